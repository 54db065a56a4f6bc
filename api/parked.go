package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
	"kivuko/workflows"
)

// ParkedFilter narrows the list of parked flows; zero values narrow nothing.
type ParkedFilter struct {
	Reason  workflows.Reason
	Network exchange.Network
	After   []byte // where the page before ended
	Size    int
}

// ParkedFlow is a flow that waits for a person.
type ParkedFlow struct {
	ID         string
	Type       string
	Reason     workflows.Reason
	Network    string
	MerchantID string
}

// ParkedFlows is a page of parked flows. Next is empty on the last one. Total counts all that the filter finds.
type ParkedFlows struct {
	Flows []ParkedFlow
	Next  []byte
	Total int64
}

// Parked asks Temporal's list of flows, which follows what happens within about a second.
func (t temporalFlows) Parked(ctx context.Context, f ParkedFilter) (ParkedFlows, error) {
	query := workflows.ParkedQuery
	// Both values are of fixed lists, so that nothing of a request becomes part of the query.
	if f.Reason != "" {
		query += ` AND KivukoParkedReason = "` + string(f.Reason) + `"`
	}
	if f.Network != "" {
		query += ` AND KivukoNetwork = "` + string(f.Network) + `"`
	}
	count, err := t.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return ParkedFlows{}, fromTemporal(err)
	}
	list, err := t.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: query, PageSize: int32(f.Size), NextPageToken: f.After, //nolint:gosec // at most maxPageSize
	})
	if err != nil {
		return ParkedFlows{}, fromTemporal(err)
	}
	out := ParkedFlows{Next: list.GetNextPageToken(), Total: count.GetCount()}
	for _, e := range list.GetExecutions() {
		fields := e.GetSearchAttributes().GetIndexedFields()
		out.Flows = append(out.Flows, ParkedFlow{
			ID: e.GetExecution().GetWorkflowId(), Type: e.GetType().GetName(), Reason: workflows.Reason(keyword(fields, workflows.AttrReason)),
			Network: keyword(fields, workflows.AttrNetwork), MerchantID: keyword(fields, workflows.AttrMerchantID),
		})
	}
	return out, nil
}

// keyword reads a search attribute, "" where a flow has none.
func keyword(fields map[string]*commonpb.Payload, key temporal.SearchAttributeKeyKeyword) string {
	var s string
	if p := fields[key.GetName()]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &s) // what is no text is shown as nothing
	}
	return s
}

// wireParked is a parked flow with what can be done about it.
type wireParked struct {
	WorkflowID string     `json:"workflow_id"`
	Type       string     `json:"type"`
	ObjectType *string    `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Reason     string     `json:"reason"`
	What       string     `json:"what"`
	Do         string     `json:"do"`
	Commands   []string   `json:"commands"`
	Network    *string    `json:"network"`
	MerchantID *string    `json:"merchant_id"`
	Runbook    string     `json:"runbook"`
}

func parkedWire(f ParkedFlow) wireParked {
	object, id := workflows.ObjectOf(f.Type, f.ID)
	a := f.Reason.Advice()
	return wireParked{
		WorkflowID: f.ID, Type: f.Type, ObjectType: optText(object), ObjectID: optID(id), Reason: string(f.Reason), What: a.What, Do: a.Do,
		Commands: append([]string{}, a.Verbs...), Network: optText(f.Network), MerchantID: optText(f.MerchantID), Runbook: a.Runbook,
	}
}

// maxCursor is the length of the place where a page of Temporal's list ended, as text.
const maxCursor = 2000

// listParked reads the flows that wait for a person.
func (s *server) listParked(c *call) error {
	q := c.query()
	size := q.integer("page_size", false, defaultPageSize, 1, maxPageSize)
	f := ParkedFilter{
		Reason:  workflows.Reason(q.oneOf("reason", each(workflows.Reasons(), func(r workflows.Reason) string { return string(r) })...)),
		Network: exchange.Network(q.oneOf("network", networkNames...)), After: q.cursor("after"), Size: int(size),
	}
	if err := q.done(); err != nil {
		return err
	}
	page, err := s.Flows.Parked(c.ctx, f)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{
		"parked": each(page.Flows, parkedWire), "page_size": size, "total": page.Total,
		"has_more": len(page.Next) > 0, "next_after": optText(base64.RawURLEncoding.EncodeToString(page.Next)),
	})
}

// cursor reads where a page ended; nil when absent.
func (q *query) cursor(name string) []byte {
	s, ok := q.take(name, false)
	if !ok {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxCursor {
		q.fail(name, "format", "must be the next_after of the page before")
		return nil
	}
	return slices.Clip(b)
}

func (s *server) parkedRoutes() []route {
	return []route{{method: http.MethodGet, path: "/api/v1/auth/parked", action: exchange.ActOperateFlows, limit: limitSearch, handle: s.listParked}}
}
