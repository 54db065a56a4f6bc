package workflows

// ProvisionEscrow is what the flow of a sale does when no escrow address is free.
var ProvisionEscrow = provisionEscrow
