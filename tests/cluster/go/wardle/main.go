// The sample apiserver (wardle). With WARDLE_OPENAPI=v2 it publishes no OpenAPI v3.
package main

import (
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/sample-apiserver/pkg/cmd/server"
)

func withoutV3(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/openapi/v3") {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	options := server.NewWardleServerOptions(os.Stdout, os.Stderr)
	command := server.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)
	if os.Getenv("WARDLE_OPENAPI") == "v2" {
		command.RunE = func(c *cobra.Command, args []string) error {
			if err := options.Complete(); err != nil {
				return err
			}
			if err := options.Validate(args); err != nil {
				return err
			}
			config, err := options.Config()
			if err != nil {
				return err
			}
			// The library wants a configuration of v3, so its paths are taken away behind authentication.
			config.GenericConfig.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
				return genericapiserver.DefaultBuildHandlerChain(withoutV3(h), c)
			}
			made, err := config.Complete().New()
			if err != nil {
				return err
			}
			return made.GenericAPIServer.PrepareRun().RunWithContext(c.Context())
		}
	}
	os.Exit(cli.Run(command))
}
