// Package workflows is the flows of Kivuko as the business tells them, one file per flow.
//
// Each flow is an exported function of a few lines around an unexported struct, whose small methods
// stand in the order of the story. A flow decides; its activities act. Everything in here must run
// the same way again from its history, so there is no clock, no randomness, no input and no output.
//
// Rules:
//
//   - Handlers are registered before the first wait, and a flow returns only when they are all done.
//   - Every wait has an end that means something. A lapsed wait is never consent, and never turns an
//     unknown outcome into a failure.
//   - A flow does not die of a technical failure. It parks: the search attribute KivukoNeedsAttention
//     is true, the current details say in a sentence what is wrong and what can be done, and an
//     operator's command sets it going again. Failed executions are bugs.
//   - Children carry out and never wait for people; they hand back a reason, and the flow that
//     started them parks with it.
//   - A message from outside carries the id of a row that the API wrote, and nothing that has to be
//     believed.
//   - A flow runs to its end on the build that it began with (Pinned). versions.go holds the changes
//     that a running flow may meet in spite of that.
package workflows
