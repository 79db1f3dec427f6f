//go:build tools

// Package cluster names what binaries.py builds, so that "go mod tidy" keeps it.
package cluster

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)
