package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// shelf is the rows and the objects of files.
type shelf struct {
	due, unpurged int
	objects       []exchange.FileRef
	stray         map[uuid.UUID]bool
	deleted       []uuid.UUID
	fault         func(string) error
}

func (s *shelf) EndFiles(_ context.Context, limit int) (int, error) {
	n := min(limit, s.due)
	s.due, s.unpurged = s.due-n, s.unpurged+n
	return n, s.fault("EndFiles")
}

func (s *shelf) UnpurgedFiles(_ context.Context, limit int) ([]exchange.FileRef, error) {
	refs := make([]exchange.FileRef, min(limit, s.unpurged))
	return refs, s.fault("UnpurgedFiles")
}

func (s *shelf) PurgeFile(context.Context, uuid.UUID) error {
	s.unpurged--
	return nil
}

func (s *shelf) UnknownFiles(_ context.Context, refs []exchange.FileRef) ([]exchange.FileRef, error) {
	return slices.DeleteFunc(refs, func(f exchange.FileRef) bool { return !s.stray[f.ID] }), s.fault("UnknownFiles")
}

func (s *shelf) List(_ context.Context, from string, size int, before time.Time) ([]exchange.FileRef, string, error) {
	if time.Until(before) > -29*24*time.Hour {
		return nil, "", errors.New("young objects would be deleted")
	}
	at, _ := strconv.Atoi(from)
	end, next := min(at+size, len(s.objects)), ""
	if end < len(s.objects) {
		next = strconv.Itoa(end)
	}
	return slices.Clone(s.objects[at:end]), next, s.fault("List")
}

func (s *shelf) Delete(_ context.Context, f exchange.FileRef) error {
	if f.ID != uuid.Nil {
		s.deleted = append(s.deleted, f.ID)
	}
	return s.fault("Delete")
}

// A run ends all files that are due and goes through all objects, whatever is away for a moment.
func TestSweepFilesGoesThroughAll(t *testing.T) {
	for _, away := range []string{"", "EndFiles", "UnpurgedFiles", "List", "UnknownFiles", "Delete"} {
		t.Run(away, func(t *testing.T) { sweepAll(t, once(away)) })
	}
}

func sweepAll(t *testing.T, fault func(string) error) {
	s := &shelf{due: 250, stray: map[uuid.UUID]bool{}, fault: fault}
	for i := range 2500 {
		s.objects = append(s.objects, exchange.FileRef{ID: uuid.New(), Purpose: exchange.FileOTCProof})
		s.stray[s.objects[i].ID] = i%1000 == 7
	}
	env := newEnvironment(nil)
	env.RegisterActivity(&activities.Files{Store: s, Objects: s, Now: time.Now})
	env.ExecuteWorkflow(workflows.SweepFiles, workflows.SweepFilesInput{})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var got workflows.SweptFiles
	if err := env.GetWorkflowResult(&got); err != nil || s.due != 0 || s.unpurged != 0 || len(s.deleted) < 3 {
		t.Errorf("%d are due, %d unpurged, deleted %v: %+v, %v", s.due, s.unpurged, s.deleted, got, err)
	}
	for _, id := range s.deleted {
		if !s.stray[id] {
			t.Errorf("the object of file %s is deleted", id)
		}
	}
}

// A large store is gone through by several runs, each of which begins where the one before ended.
func TestSweepFilesGoesOnAsNew(t *testing.T) {
	s := &shelf{objects: make([]exchange.FileRef, 500_001), fault: once("")}
	env := newEnvironment(nil)
	env.RegisterActivity(&activities.Files{Store: s, Objects: s, Now: time.Now})
	env.ExecuteWorkflow(workflows.SweepFiles, workflows.SweepFilesInput{})
	next, ok := errors.AsType[*workflow.ContinueAsNewError](env.GetWorkflowError())
	if !ok || next.WorkflowType.Name != workflows.TypeSweepFiles {
		t.Fatalf("ended with %v", env.GetWorkflowError())
	}
}
