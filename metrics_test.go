package main

import (
	"testing"

	"kivuko/store/storetest"
)

func TestProcessesMeasureThemselves(t *testing.T) {
	registry, err := newRegistry(storetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range families {
		found[f.GetName()] = true
	}
	for _, name := range []string{
		"go_goroutines", "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes", "process_open_fds",
		"go_sql_open_connections", "go_sql_in_use_connections", "go_sql_wait_count_total",
	} {
		if !found[name] {
			t.Errorf("%s is not measured", name)
		}
	}
}
