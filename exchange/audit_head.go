package exchange

// AuditHead is the newest link of the audit log's chain. A copy outside the database shows that the end of the log was cut off.
type AuditHead struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"` // hexadecimal; empty when nothing is sealed
	Key  string `json:"key"`  // the id of the key that it was computed with
}

// AuditKey computes links of the audit log's chain. Who has only the database can't compute one.
type AuditKey struct {
	ID     string
	Secret []byte // 32 bytes
}
