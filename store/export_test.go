package store

// WriteJournal is the statement that draws positions in the logs, for a test of what two transactions draw.
const WriteJournal = writeJournal
