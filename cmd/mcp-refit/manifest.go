package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// maxManifest is the largest manifest that is read, in bytes.
const maxManifest = 16 << 20

func manifestCommand(std stdio) *cobra.Command {
	c := &cobra.Command{
		Use:   "manifest",
		Short: "Put the proxy into Kubernetes manifests",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(manifestSidecarCommand(std))
	return c
}

func manifestSidecarCommand(std stdio) *cobra.Command {
	s := sidecar{image: "ghcr.io/mcp-refit/mcp-refit:" + imageTag()}
	cmd := &cobra.Command{
		Use:   "sidecar [flags] < deployment.yaml",
		Short: "Print a manifest with the proxy as a sidecar in front of its server",
		Long: "Read a manifest and print it with the proxy as a native sidecar (Kubernetes 1.29 and later)\n" +
			"in front of the server's container, which stays as it is. Services in the same manifest that\n" +
			"point at the server's port are pointed at the proxy. Every other byte stays, comments\n" +
			"included; what has the sidecar already is printed as it is.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			in, err := io.ReadAll(io.LimitReader(std.in, maxManifest+1))
			if err != nil {
				return err
			}
			if len(in) > maxManifest {
				return usagef("the manifest is larger than %d bytes", maxManifest)
			}
			out, err := s.patch(in)
			if err != nil {
				return usageError{fmt.Errorf("the manifest: %w", err)}
			}
			_, err = std.out.Write(out)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.image, "image", s.image, "the proxy's `image`")
	f.StringVar(&s.container, "container", "", "`name` of the server's container; the first without it")
	f.IntVar(&s.serverPort, "server-port", 0, "`port` that the server listens on; its container's first without it")
	f.StringVar(&s.path, "path", "/mcp", "`path` of the server's MCP endpoint")
	f.IntVar(&s.listenPort, "listen-port", 0, "`port` that the proxy serves; 8080, or the next that is free, without it")
	f.IntVar(&s.adminPort, "admin-port", 0, "`port` for health and metrics; 9090, or the next that is free, without it")
	f.StringVar(&s.configMap, "config-map", "", "`name` of a ConfigMap with a policy.yaml; the built-in policy without it")
	return cmd
}

// imageTag is the tag of the image of this version.
func imageTag() string {
	if version == "" {
		return "latest"
	}
	return version
}
