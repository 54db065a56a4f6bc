package exchange

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Limits of bank days.
const (
	MaxBankDayName = 80                       // characters
	MaxBankDayLead = 2 * 366 * 24 * time.Hour // how far ahead a day may be entered
)

// BankDay is an entry about a day on which banks in Kenya settle or don't, other than its day of the week says: a public holiday,
// or its correction. The latest entry of a day counts.
type BankDay struct {
	Day       time.Time // midnight UTC of the date
	Entry     int       // from 1
	IsOpen    bool
	Name      string    // of the holiday, or why banks settle after all
	ChangeID  uuid.UUID // by which two officers agreed; zero for the holidays that are known for every year
	EnteredAt time.Time
}

// DateOf is the date in Kenya of a moment, as midnight UTC.
func DateOf(at time.Time) time.Time { return DayOf(at).Add(kenya) }

// Validate checks an entry at the moment of its proposal or confirmation. CodeInvalid names the field.
func (d BankDay) Validate(now time.Time) error {
	var bad []FieldError
	if today := DateOf(now); d.Day.Before(today) || d.Day.After(today.Add(MaxBankDayLead)) {
		bad = append(bad, FieldError{Pointer: "/day", Code: "out_of_range", Message: "must be today or within two years"})
	}
	if n := len([]rune(d.Name)); n == 0 || n > MaxBankDayName {
		bad = append(bad, FieldError{Pointer: "/name", Code: "length", Message: fmt.Sprintf("must have 1 to %d characters", MaxBankDayName)})
	}
	return Invalid(bad...)
}
