package worker

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// ParkedIndex reads the parked flows from Temporal's search attributes.
type ParkedIndex struct{ Client client.Client }

var _ activities.ParkedIndex = ParkedIndex{}

// parkedPage is how many flows Temporal lists at a time.
const parkedPage = 500

// ParkedFlows lists every running flow whose search attributes show it as parked. Since is the start of the flow, because
// the attributes don't have the time of parking.
func (i ParkedIndex) ParkedFlows(ctx context.Context) ([]exchange.ParkedFlow, error) {
	var all []exchange.ParkedFlow
	var next []byte
	for {
		list, err := i.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: workflows.ParkedQuery, PageSize: parkedPage, NextPageToken: next})
		if err != nil {
			return nil, err
		}
		for _, e := range list.GetExecutions() {
			fields := e.GetSearchAttributes().GetIndexedFields()
			p := exchange.ParkedFlow{
				WorkflowID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId(), Type: e.GetType().GetName(),
				Reason: keyword(fields, workflows.AttrReason), Network: exchange.Network(keyword(fields, workflows.AttrNetwork)), Since: e.GetStartTime().AsTime(),
			}
			p.ObjectType, p.ObjectID = workflows.ObjectOf(p.WorkflowID)
			all = append(all, p)
		}
		if next = list.GetNextPageToken(); len(next) == 0 {
			return all, nil
		}
	}
}

// keyword reads a search attribute, "" if the flow has none.
func keyword(fields map[string]*commonpb.Payload, key temporal.SearchAttributeKeyKeyword) string {
	var s string
	if p := fields[key.GetName()]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &s) // a value that is not text is shown as ""
	}
	return s
}
