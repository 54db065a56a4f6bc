package e2e

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

	"kivuko/worker"
)

// readHistory reads the whole history of a flow with decrypted payloads, so that it can be replayed without keys. An empty
// run means the newest one. The result holds everything that encryption hides.
func readHistory(ctx context.Context, c client.Client, codec *worker.Codec, id, run string) (*historypb.History, error) {
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

// Values that name a machine and don't matter to a replay: the identity of a worker, and its sticky queue, which is named
// after the host.
var (
	identity    = regexp.MustCompile(`"identity":\s*"[^"]*"`)
	stickyQueue = regexp.MustCompile(`"name":\s*"[^":]+:[0-9a-f-]{36}"`)
)

// secretField is a token in a message's argument. It is valid once and for minutes, but a public sample must not contain it.
var secretField = regexp.MustCompile(`("token":\s*)"[^"]*"`)

// recordHistory writes a flow's decrypted history to a file, in the form that the replayer reads.
func recordHistory(ctx context.Context, c client.Client, codec *worker.Codec, id, run, file string) error {
	h, err := readHistory(ctx, c, codec, id, run)
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
