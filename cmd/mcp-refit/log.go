package main

import (
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/mcp-refit/mcp-refit/policy"
)

// newLog writes to stderr, since stdout is the wire: for people on a terminal,
// as JSON lines elsewhere. What is set of level later takes hold at once.
func newLog(c policy.RunConfig, w io.Writer, level zap.AtomicLevel) *zap.Logger {
	if least, err := zapcore.ParseLevel(c.LogLevel); err == nil {
		level.SetLevel(least)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339TimeEncoder
	console := c.LogFormat == "console"
	if f, ok := w.(*os.File); ok && c.LogFormat == "auto" {
		console = term.IsTerminal(int(f.Fd()))
	}
	encoder := zapcore.NewJSONEncoder(encoding)
	if console {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}
