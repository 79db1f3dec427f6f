// Informers of client-go for every resource that can be watched, one of objects and one of metadata each.
//
// informers KUBECONFIG: starts all at once, waits until they have synced, makes and deletes a ConfigMap, and
// prints one line of JSON: how many there are, how many synced, how many saw the ConfigMap, every error.
package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const limit = 120 * time.Second

type report struct {
	Informers int            `json:"informers"`
	Synced    int            `json:"synced"`
	Saw       int            `json:"saw"`
	Missing   []string       `json:"missing"`
	Errors    map[string]int `json:"errors"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	config.QPS, config.Burst = 1000, 1000
	client := must(kubernetes.NewForConfig(config))
	told := report{Errors: map[string]int{}}
	var lock sync.Mutex

	objects := dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(config)), 0)
	parts := metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(config)), 0)
	informers := map[string]cache.SharedIndexInformer{}
	for _, resource := range watchable(client.Discovery()) {
		informers["object "+resource.String()] = objects.ForResource(resource).Informer()
		informers["metadata "+resource.String()] = parts.ForResource(resource).Informer()
	}
	for _, informer := range informers {
		handler := func(_ *cache.Reflector, err error) {
			lock.Lock()
			defer lock.Unlock()
			told.Errors[err.Error()]++
		}
		if err := informer.SetWatchErrorHandler(handler); err != nil {
			panic(err)
		}
	}
	seen := make(chan struct{}, 10)
	for _, kind := range []string{"object ", "metadata "} {
		informer := informers[kind+schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}.String()]
		must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(found any) {
			if found.(metav1.Object).GetName() == "informed" {
				seen <- struct{}{}
			}
		}}))
	}

	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	objects.Start(ctx.Done())
	parts.Start(ctx.Done())
	told.Informers = len(informers)
	for name, informer := range informers {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			told.Synced++
		} else {
			told.Missing = append(told.Missing, name)
		}
	}
	maps := client.CoreV1().ConfigMaps("default")
	must(maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "informed"}}, metav1.CreateOptions{}))
	for range 2 {
		select {
		case <-seen:
			told.Saw++
		case <-time.After(20 * time.Second):
		}
	}
	_ = maps.Delete(ctx, "informed", metav1.DeleteOptions{})
	lock.Lock()
	defer lock.Unlock()
	os.Stdout.Write(append(must(json.Marshal(told)), '\n'))
}

// watchable lists the resources of every served version that can be listed and watched.
func watchable(client discovery.DiscoveryInterface) (found []schema.GroupVersionResource) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		panic(err)
	}
	for _, list := range lists {
		version := must(schema.ParseGroupVersion(list.GroupVersion))
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "watch") && slices.Contains(resource.Verbs, "list") {
				found = append(found, version.WithResource(resource.Name))
			}
		}
	}
	return found
}
