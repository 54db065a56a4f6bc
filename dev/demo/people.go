// Package demo fills a local stack with users, wallets and offers, and runs Kivuko's main job once on each network: a
// customer pays shillings from a phone, gets USDT, and sells some of it back.
//
// Everything goes through the public API, as an app would do it, except money from outside. Coins come from the
// development node's treasury, and the product books them as deposits. The opening balances in shillings are booked
// directly.
package demo

// Password is the password of every demo account. The stack listens only on loopback.
const Password = "shillings for tokens, demo"

// Person is a demo account.
type Person struct {
	Email, Phone, First, Last, Role string
	Vendor                          string // the master vendor's e-mail, of a subvendor
	Wallet                          bool   // gets a wallet on every network
}

// The accounts that the main job and the end-to-end tests name.
const (
	CustomerEmail = "amina@kivuko.example"
	SecondEmail   = "juma@kivuko.example"
	ThirdEmail    = "zawadi@kivuko.example"
	VendorEmail   = "baraka@kivuko.example"
	// ExhaustedVendorEmail has no coin for fees on Ethereum in tests either, so that its payments need the house's gas.
	ExhaustedVendorEmail = "simba@kivuko.example"
	TreasuryEmail        = "njeri@kivuko.example"
	SecondTreasuryEmail  = "otieno@kivuko.example"
	DeskEmail            = "wanjiku@kivuko.example" // an OTC officer
)

// People returns the demo accounts besides the first admin, vendors before their subvendors.
func People() []Person {
	return []Person{
		{Email: TreasuryEmail, Phone: "+254700000011", First: "Njeri", Last: "Kamau", Role: "treasury"},
		{Email: SecondTreasuryEmail, Phone: "+254700000012", First: "Otieno", Last: "Odhiambo", Role: "treasury"},
		{Email: DeskEmail, Phone: "+254700000013", First: "Wanjiku", Last: "Mwangi", Role: "otc_officer"},
		{Email: VendorEmail, Phone: "+254711000021", First: "Baraka", Last: "Exchange", Role: "vendor", Wallet: true},
		{Email: ExhaustedVendorEmail, Phone: "+254711000022", First: "Simba", Last: "Forex", Role: "vendor", Wallet: true},
		{Email: "nairobi@kivuko.example", Phone: "+254711000023", First: "Kevin", Last: "Nairobi", Role: "subvendor", Vendor: VendorEmail, Wallet: true},
		{Email: "mombasa@kivuko.example", Phone: "+254711000024", First: "Fatuma", Last: "Mombasa", Role: "subvendor", Vendor: ExhaustedVendorEmail, Wallet: true},
		{Email: CustomerEmail, Phone: "+254722000031", First: "Amina", Last: "Hassan-Wanjiru", Role: "customer", Wallet: true},
		{Email: SecondEmail, Phone: "+254722000032", First: "Juma", Last: "Ali", Role: "customer", Wallet: true},
		{Email: ThirdEmail, Phone: "+254722000033", First: "Zawadi", Last: "Mutua", Role: "customer", Wallet: true},
	}
}
