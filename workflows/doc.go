// Package workflows holds the durable flows of Kivuko, one file per flow.
//
// Each flow is an exported function of a few lines around an unexported struct, whose small methods are in the order in
// which they happen. A flow decides; its activities act. A replay from the history must give the same commands, so flows
// use no clock, no randomness, no input and no output.
//
// Rules:
//
//   - Handlers are registered before the first wait, and a flow returns only when they are all done.
//   - Every wait has an end with a defined meaning. A lapsed wait is never consent, and never turns an unknown outcome into
//     a failure.
//   - A technical failure does not end a flow. The flow parks: the search attribute KivukoNeedsAttention is true, the
//     current details describe the problem and the possible actions, and an operator's command lets it go on. A failed
//     execution is a bug.
//   - Children don't wait for operators or officers; they return a reason, and the flow that started them parks with it.
//   - A message from outside carries only the id of a row that the API wrote. The flow reads the row.
//   - A flow stays on the build with which it began (Pinned), so most changes need nothing more. A change that must reach
//     running flows, such as the fix of a bug that keeps them from ending, goes behind workflow.GetVersion, in a file
//     versions.go: a constant for the id, which is never used again, and a comment that says when to remove both. There is
//     none now.
package workflows
