package worker

import (
	"context"
	"fmt"
	"os"
	"regexp"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
)

// ReadHistory reads the whole history of a flow with its payloads decrypted, so that it can be replayed
// without keys. Without a run it is that of the newest one. It serves tests: what it returns holds everything
// that encryption hides.
func ReadHistory(ctx context.Context, c client.Client, codec *Codec, id, run string) (*historypb.History, error) {
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var h historypb.History
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", id, err)
		}
		h.Events = append(h.Events, e)
	}
	err := proxy.VisitPayloads(ctx, &h, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			return codec.Decode(payloads)
		},
		SkipSearchAttributes: true,
	})
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", id, err)
	}
	return &h, nil
}

// What names a machine and says nothing to a replay: who did a step, and the queue of a worker's cache, which is
// called by the host.
var (
	identity    = regexp.MustCompile(`"identity":\s*"[^"]*"`)
	stickyQueue = regexp.MustCompile(`"name":\s*"[^":]+:[0-9a-f-]{36}"`)
)

// secretField is the argument of a message that proves a right. It is good once and for minutes, and a sample
// that anybody can read still does without.
var secretField = regexp.MustCompile(`("token":\s*)"[^"]*"`)

// RecordHistory writes a flow's decrypted history to a file, in the form that the replayer reads.
func RecordHistory(ctx context.Context, c client.Client, codec *Codec, id, run, file string) error {
	h, err := ReadHistory(ctx, c, codec, id, run)
	if err != nil {
		return err
	}
	err = proxy.VisitPayloads(ctx, h, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range payloads {
				p.Data = secretField.ReplaceAll(p.GetData(), []byte(`${1}"left out"`))
			}
			return payloads, nil
		},
		SkipSearchAttributes: true,
	})
	if err != nil {
		return fmt.Errorf("history of %s: %w", id, err)
	}
	raw, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(h)
	if err != nil {
		return fmt.Errorf("history of %s: %w", id, err)
	}
	raw = identity.ReplaceAll(raw, []byte(`"identity": "kivuko"`))
	raw = stickyQueue.ReplaceAll(raw, []byte(`"name": "sticky"`))
	return os.WriteFile(file, append(raw, '\n'), 0o600)
}
