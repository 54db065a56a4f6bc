package workflows

// GrowEscrow is what the flow of a sale does when no escrow address is free.
var GrowEscrow = growEscrow
