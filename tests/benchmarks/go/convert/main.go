// Convert reads Swagger 2.0 documents (one path per argument after the number of rounds), turns each into
// OpenAPI v3 JSON with kube-openapi's openapiconv, and prints the CPU nanoseconds of each round, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: convert ROUNDS FILE...")
		os.Exit(2)
	}
	rounds, _ := strconv.Atoi(os.Args[1])
	times := map[string][]int64{}
	for _, path := range os.Args[2:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for round := 0; round < rounds; round++ {
			runtime.GC()
			start := cpu()
			if err := convert(data); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			times[path] = append(times[path], cpu()-start)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(times)
}

func convert(data []byte) error {
	var swagger spec.Swagger
	if err := swagger.UnmarshalJSON(data); err != nil {
		return err
	}
	_, err := json.Marshal(openapiconv.ConvertV2ToV3(&swagger))
	return err
}

func cpu() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}
