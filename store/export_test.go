package store

// The statements that draw positions in the logs, for a test of what two transactions draw.
const (
	InsertEvent = insertEvent
	InsertAudit = insertAudit
)
