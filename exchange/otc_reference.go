package exchange

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"

	"github.com/google/uuid"
)

// Payment references of OTC deposits: OTCPrefix, eight characters and a check character. People copy them from a screen to a bank's
// form, so no two characters of the alphabet look alike, and one wrong character or two swapped ones make a reference that no deposit
// has: with weights from 1 to 9 and a prime number of characters the weighted sum changes. 0028_otc_deposits.sql has the same.
const (
	OTCPrefix    = "KVD"
	otcAlphabet  = "34679ACDEFGHJKMNPRTVWXY" // 23 characters
	otcRandom    = 8
	otcReference = len(OTCPrefix) + otcRandom + 1
)

// OTCReferences are the references that a deposit may get, in their order. They derive from its id; it takes the first that no other
// deposit has or had.
func OTCReferences(deposit uuid.UUID) []string {
	const draws = 8
	all, base := make([]string, draws), big.NewInt(int64(len(otcAlphabet)))
	for n := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "kivuko deposit reference %s %d", deposit, n))
		rest, digit, text := new(big.Int).SetBytes(sum[:]), new(big.Int), make([]byte, otcRandom)
		for i := range text {
			rest.DivMod(rest, base, digit)
			text[i] = otcAlphabet[digit.Int64()]
		}
		all[n] = OTCPrefix + string(text) + string(checkCharacter(string(text)))
	}
	return all
}

// checkCharacter makes the weighted sum of a reference's nine characters a multiple of their number.
func checkCharacter(text string) byte {
	const inverse = 18 // of 9, the weight of the check character, modulo 23
	n := len(otcAlphabet)
	return otcAlphabet[(n-weightedSum(text)%n)*inverse%n]
}

func weightedSum(text string) int {
	sum := 0
	for i, c := range []byte(text) {
		sum += (i + 1) * strings.IndexByte(otcAlphabet, c)
	}
	return sum
}

// ValidOTCReference reports whether a text has the form of a deposit's reference, with its check character.
func ValidOTCReference(text string) bool {
	rest, ok := strings.CutPrefix(text, OTCPrefix)
	return ok && len(text) == otcReference && strings.Trim(rest, otcAlphabet) == "" && weightedSum(rest)%len(otcAlphabet) == 0
}
