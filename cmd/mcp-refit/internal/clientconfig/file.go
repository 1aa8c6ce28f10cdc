package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// BackupSuffix is put behind a file's name for the copy of what it was before
// the last change.
const BackupSuffix = ".mcp-refit-backup"

// Read reads a configuration file. A symbolic link is followed.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

// Write puts text in the place of a file that held was: at once or not at all,
// with the mode that the file has. Where the path is a symbolic link, the file
// that it leads to is written. A copy of what it held is left beside that, and
// its path is returned. A file that may not be written, or that has changed in
// the meantime, is left as it is.
func Write(path string, was, text []byte) (backup string, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return "", &fs.PathError{Op: "write", Path: path, Err: errors.New("the file is read-only")}
	}
	now, err := Read(path)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(now, was) {
		return "", &fs.PathError{Op: "write", Path: path, Err: errors.New("it has changed in the meantime; try again")}
	}
	backup = path + BackupSuffix
	if err := replace(backup, was, info.Mode().Perm()); err != nil {
		return "", fmt.Errorf("the backup: %w", err)
	}
	return backup, replace(path, text, info.Mode().Perm())
}

// replace writes a file beside its place and moves it there.
func replace(path string, text []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if _, err = f.Write(text); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
