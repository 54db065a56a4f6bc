package svm

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Names of Agave's TransactionError variants that callers compare with.
const (
	AlreadyProcessed         = "AlreadyProcessed"
	BlockhashNotFound        = "BlockhashNotFound"
	SignatureFailure         = "SignatureFailure"
	kindInstruction          = "InstructionError"
	kindDuplicateInstruction = "DuplicateInstruction"
	kindRent                 = "InsufficientFundsForRent"
	kindCustom               = "Custom"
)

// MarshalJSON writes the error as Agave's RPC does.
func (e *TransactionError) MarshalJSON() ([]byte, error) {
	switch e.Kind {
	case kindInstruction:
		return json.Marshal(map[string]any{e.Kind: []any{e.Index, e.Instruction}})
	case kindDuplicateInstruction:
		return json.Marshal(map[string]int{e.Kind: e.Index})
	case kindRent:
		return json.Marshal(map[string]any{e.Kind: map[string]int{"account_index": e.Index}})
	default:
		return json.Marshal(e.Kind)
	}
}

// Error is Agave's text of the error, as it stands in the message of a failed
// preflight: "Transaction simulation failed: " and this.
func (e *TransactionError) Error() string {
	switch e.Kind {
	case kindInstruction:
		return fmt.Sprintf("Error processing Instruction %d: %s", e.Index, e.Instruction.Error())
	case kindDuplicateInstruction:
		return fmt.Sprintf("Transaction contains a duplicate instruction (%d) that is not allowed", e.Index)
	case kindRent:
		return fmt.Sprintf("Transaction results in an account (%d) with insufficient funds for rent", e.Index)
	}
	if text, ok := transactionTexts[e.Kind]; ok {
		return text
	}
	return e.Kind
}

// MarshalJSON writes the error as Agave's RPC does.
func (e *InstructionError) MarshalJSON() ([]byte, error) {
	if e.Kind == kindCustom {
		return json.Marshal(map[string]uint32{kindCustom: e.Code})
	}
	return json.Marshal(e.Kind)
}

// Error is Agave's text of the error, as it stands in the logs.
func (e *InstructionError) Error() string {
	if e.Kind == kindCustom {
		return fmt.Sprintf("custom program error: 0x%x", e.Code)
	}
	if text, ok := instructionTexts[e.Kind]; ok {
		return text
	}
	return e.Kind
}

// fail is an instruction error of one of Agave's kinds.
func fail(kind string) error { return &InstructionError{Kind: kind} }

// custom is an error with the program's own number.
func custom(code uint32) error { return &InstructionError{Kind: kindCustom, Code: code} }

// errBadData says that an instruction's data does not decode.
func errBadData() error { return fail("InvalidInstructionData") }

// instructionError is what the caller of a program learns of an error in it. What
// is no instruction error is a fault of the program: it did not complete.
func instructionError(err error) *InstructionError {
	var known *InstructionError
	if errors.As(err, &known) {
		return &InstructionError{Kind: known.Kind, Code: known.Code}
	}
	return &InstructionError{Kind: "ProgramFailedToComplete"}
}

// failedAt is the transaction's error when an instruction of it failed.
func failedAt(index int, err error) *TransactionError {
	return &TransactionError{Kind: kindInstruction, Index: index, Instruction: instructionError(err)}
}

// returnCodes are the numbers that a program returns in the upper half of r0, as
// solana-program-error numbers them.
var returnCodes = [...]string{
	1:  kindCustom,
	2:  "InvalidArgument",
	3:  "InvalidInstructionData",
	4:  "InvalidAccountData",
	5:  "AccountDataTooSmall",
	6:  "InsufficientFunds",
	7:  "IncorrectProgramId",
	8:  "MissingRequiredSignature",
	9:  "AccountAlreadyInitialized",
	10: "UninitializedAccount",
	11: "NotEnoughAccountKeys",
	12: "AccountBorrowFailed",
	13: "MaxSeedLengthExceeded",
	14: "InvalidSeeds",
	15: "BorshIoError",
	16: "AccountNotRentExempt",
	17: "UnsupportedSysvar",
	18: "IllegalOwner",
	19: "MaxAccountsDataAllocationsExceeded",
	20: "InvalidRealloc",
	21: "MaxInstructionTraceLengthExceeded",
	22: "BuiltinProgramsMustConsumeComputeUnits",
	23: "InvalidAccountOwner",
	24: "ArithmeticOverflow",
	25: "Immutable",
	26: "IncorrectAuthority",
}

// returned reads what a program left in r0: nothing, a number of its own in the
// lower half, or one that all programs share in the upper half.
func returned(r0 uint64) error {
	shared, own := r0>>32, uint32(r0)
	switch {
	case r0 == 0:
		return nil
	case shared == 0:
		return custom(own)
	case own != 0 || shared >= uint64(len(returnCodes)):
		return fail("InvalidError")
	case returnCodes[shared] == kindCustom:
		return custom(0)
	default:
		return fail(returnCodes[shared])
	}
}

var transactionTexts = map[string]string{
	"AccountInUse":                       "Account in use",
	"AccountLoadedTwice":                 "Account loaded twice",
	"AccountNotFound":                    "Attempt to debit an account but found no record of a prior credit.",
	"AddressLookupTableNotFound":         "Transaction loads an address table account that doesn't exist",
	AlreadyProcessed:                     "This transaction has already been processed",
	BlockhashNotFound:                    "Blockhash not found",
	"InsufficientFundsForFee":            "Insufficient funds for fee",
	"InvalidAccountForFee":               "This account may not be used to pay transaction fees",
	"InvalidAddressLookupTableData":      "Transaction loads an address table account with invalid data",
	"InvalidAddressLookupTableIndex":     "Transaction address table lookup uses an invalid index",
	"InvalidAddressLookupTableOwner":     "Transaction loads an address table account with an invalid owner",
	"InvalidLoadedAccountsDataSizeLimit": "LoadedAccountsDataSizeLimit set for transaction must be greater than 0.",
	"InvalidProgramForExecution":         "This program may not be used for executing instructions",
	"MaxLoadedAccountsDataSizeExceeded":  "Transaction exceeded max loaded accounts data size cap",
	"ProgramAccountNotFound":             "Attempt to load a program that does not exist",
	"SanitizeFailure":                    "Transaction failed to sanitize accounts offsets correctly",
	SignatureFailure:                     "Transaction did not pass signature verification",
	"TooManyAccountLocks":                "Transaction locked too many accounts",
}

var instructionTexts = map[string]string{
	"AccountAlreadyInitialized":          "instruction requires an uninitialized account",
	"AccountBorrowFailed":                "instruction tries to borrow reference for an account which is already borrowed",
	"AccountDataSizeChanged":             "program other than the account's owner changed the size of the account data",
	"AccountDataTooSmall":                "account data too small for instruction",
	"AccountNotExecutable":               "instruction expected an executable account",
	"AccountNotRentExempt":               "An account does not have enough lamports to be rent-exempt",
	"ArithmeticOverflow":                 "Program arithmetic overflowed",
	"CallDepth":                          "Cross-program invocation call depth too deep",
	"ComputationalBudgetExceeded":        "Computational budget exceeded",
	"ExternalAccountDataModified":        "instruction modified data of an account it does not own",
	"ExternalAccountLamportSpend":        "instruction spent from the balance of an account it does not own",
	"GenericError":                       "generic instruction error",
	"IllegalOwner":                       "Provided owner is not allowed",
	"Immutable":                          "Account is immutable",
	"IncorrectAuthority":                 "Incorrect authority provided",
	"IncorrectProgramId":                 "incorrect program id for instruction",
	"InsufficientFunds":                  "insufficient funds for instruction",
	"InvalidAccountData":                 "invalid account data for instruction",
	"InvalidAccountOwner":                "Invalid account owner",
	"InvalidArgument":                    "invalid program argument",
	"InvalidError":                       "program returned invalid error code",
	"InvalidInstructionData":             "invalid instruction data",
	"InvalidRealloc":                     "Failed to reallocate account data",
	"InvalidSeeds":                       "Provided seeds do not result in a valid address",
	"BorshIoError":                       "Failed to serialize or deserialize account data",
	"MaxAccountsDataAllocationsExceeded": "Accounts data allocations exceeded the maximum allowed per transaction",
	"MaxInstructionTraceLengthExceeded":  "Max instruction trace length exceeded",
	"MaxSeedLengthExceeded":              "Length of the seed is too long for address generation",
	"MissingAccount":                     "An account required by the instruction is missing",
	"MissingRequiredSignature":           "missing required signature for instruction",
	"ModifiedProgramId":                  "instruction illegally modified the program id of an account",
	"NotEnoughAccountKeys":               "insufficient account keys for instruction",
	"PrivilegeEscalation":                "Cross-program invocation with unauthorized signer or writable account",
	"ProgramEnvironmentSetupFailure":     "Failed to create program execution environment",
	"ProgramFailedToComplete":            "Program failed to complete",
	"ReadonlyDataModified":               "instruction modified data of a read-only account",
	"ReadonlyLamportChange":              "instruction changed the balance of a read-only account",
	"ReentrancyNotAllowed":               "Cross-program invocation reentrancy not allowed for this instruction",
	"UnbalancedInstruction":              "sum of account balances before and after instruction do not match",
	"UninitializedAccount":               "instruction requires an initialized account",
	"UnsupportedProgramId":               "Unsupported program id",
	"UnsupportedSysvar":                  "Unsupported sysvar",
}
