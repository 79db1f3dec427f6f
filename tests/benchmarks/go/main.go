// Peer answers with what Kubernetes' own Go code makes of a document, for the benchmark and for recording
// reference bytes. Documents come on standard input, each behind its length (4 bytes, big-endian).
//
//	peer answer protobuf|cbor    for each document: 0 and the bytes, or 1 and why not, with a length as above
//	peer time protobuf|cbor N    encodes all of them N times; prints the CPU nanoseconds of each round, as JSON
//	peer answer uncbor           for each CBOR item: 0 and its JSON, or 1 and why not
//	peer answer swagger          for each Swagger 2.0 document: 0 and gnostic's Protobuf, or 1 and why not
//	peer answer upgrade          for each Swagger 2.0 document: 0 and kube-openapi's OpenAPI v3, or 1 and why not
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

type convert func([]byte) ([]byte, error)

var converts = map[string]convert{
	"protobuf": handler3.ToV3ProtoBinary,
	"cbor": func(document []byte) ([]byte, error) {
		var value any
		if err := kubejson.Unmarshal(document, &value); err != nil {
			return nil, err
		}
		return direct.Marshal(value)
	},
	"upgrade": func(document []byte) ([]byte, error) {
		var swagger spec.Swagger
		if err := swagger.UnmarshalJSON(document); err != nil {
			return nil, err
		}
		return json.Marshal(openapiconv.ConvertV2ToV3(&swagger))
	},
	"swagger": func(document []byte) ([]byte, error) { // as handler.ToProtoBinary
		swagger, err := openapi_v2.ParseDocument(document)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(swagger)
	},
	"uncbor": func(item []byte) ([]byte, error) {
		var value any
		if err := direct.Unmarshal(item, &value); err != nil {
			return nil, err
		}
		return json.Marshal(value)
	},
}

func main() {
	if len(os.Args) < 3 || converts[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer answer|time protobuf|cbor|swagger|uncbor|upgrade [rounds]")
		os.Exit(2)
	}
	run := converts[os.Args[2]]
	if os.Args[1] == "time" {
		rounds, _ := strconv.Atoi(os.Args[3])
		time(run, rounds)
		return
	}
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for document := next(in); document != nil; document = next(in) {
		answer(out, run, document)
	}
}

func next(in io.Reader) []byte {
	var length uint32
	if binary.Read(in, binary.BigEndian, &length) != nil {
		return nil
	}
	document := make([]byte, length)
	if _, err := io.ReadFull(in, document); err != nil {
		return nil
	}
	return document
}

func answer(out *bufio.Writer, run convert, document []byte) {
	status, result := byte(0), []byte(nil)
	func() {
		defer func() {
			if reason := recover(); reason != nil {
				status, result = 1, []byte(fmt.Sprint("panic: ", reason))
			}
		}()
		bytes, err := run(document)
		if err != nil {
			status, bytes = 1, []byte(err.Error())
		}
		result = bytes
	}()
	out.WriteByte(status)
	binary.Write(out, binary.BigEndian, uint32(len(result)))
	out.Write(result)
	out.Flush()
}

func time(run convert, rounds int) {
	var documents [][]byte
	in := bufio.NewReader(os.Stdin)
	for document := next(in); document != nil; document = next(in) {
		documents = append(documents, document)
	}
	spent := []int64{}
	for range rounds {
		runtime.GC()
		before := cpu()
		for _, document := range documents {
			if _, err := run(document); err != nil {
				panic(err)
			}
		}
		spent = append(spent, cpu()-before)
	}
	json.NewEncoder(os.Stdout).Encode(spent)
}

func cpu() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}
