package exchange

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// FilePurpose is what a file is uploaded for. It decides who may upload and read it, what it may be, and how long it is kept.
type FilePurpose string

// The purposes.
const (
	FileOTCProof          FilePurpose = "otc_proof"          // a receipt or other proof of a payment
	FileBankStatement     FilePurpose = "bank_statement"     // of an account of the house
	FileExceptionEvidence FilePurpose = "exception_evidence" // for a decision about money that does not fit, or for a journal entry
)

// FileType is a media type, found by what a file holds.
type FileType string

// The types.
const (
	FilePDF  FileType = "application/pdf"
	FilePNG  FileType = "image/png"
	FileJPEG FileType = "image/jpeg"
	FileXML  FileType = "application/xml"
	FileCSV  FileType = "text/csv"
)

// Limits of files. Each is part of the contract.
const (
	MaxFileSize      = 10 << 20  // bytes of a document or picture
	MaxStatementSize = 128 << 20 // bytes of a bank statement: 100,000 entries of CAMT.053
	MaxFilePages     = 50
	MaxFileName      = 120 // characters
	MaxFilesPerDay   = 200 // that one user uploads within 24 hours
	MaxMerchantFiles = 600 // that a merchant and its subvendors upload within 24 hours
	FileLinkLife     = 5 * time.Minute
)

// fileRule is what a purpose allows.
type fileRule struct {
	types []FileType
	size  int64
	roles []Role
}

var (
	documents  = []FileType{FilePDF, FilePNG, FileJPEG}
	statements = []FileType{FileXML, FileCSV}
)

var fileRules = map[FilePurpose]fileRule{
	FileOTCProof:          {documents, MaxFileSize, []Role{RoleVendor, RoleSubvendor, RoleAdmin, RoleOTCOfficer, RoleTreasury}},
	FileBankStatement:     {statements, MaxStatementSize, []Role{RoleAdmin, RoleTreasury}},
	FileExceptionEvidence: {documents, MaxFileSize, []Role{RoleAdmin, RoleOTCOfficer, RoleTreasury}},
}

// FilePurposes lists the purposes.
func FilePurposes() []FilePurpose {
	return []FilePurpose{FileOTCProof, FileBankStatement, FileExceptionEvidence}
}

// FileTypes lists the types.
func FileTypes() []FileType { return []FileType{FilePDF, FilePNG, FileJPEG, FileXML, FileCSV} }

// Types are the types that a file of the purpose may have.
func (p FilePurpose) Types() []FileType { return slices.Clone(fileRules[p].types) }

// MaxSize is how many bytes a file of the purpose may have.
func (p FilePurpose) MaxSize() int64 { return fileRules[p].size }

// UsedBy reports whether a role may upload files of the purpose, and read those that it may see.
func (p FilePurpose) UsedBy(r Role) bool { return slices.Contains(fileRules[p].roles, r) }

// Image reports whether files of the type are pictures, which are also kept as PDFs.
func (t FileType) Image() bool { return t == FilePNG || t == FileJPEG }

// fileEndings are what names of files end with, by type; the first one is what we write.
var fileEndings = map[FileType][]string{
	FilePDF: {".pdf"}, FilePNG: {".png"}, FileJPEG: {".jpg", ".jpeg"}, FileXML: {".xml"}, FileCSV: {".csv"},
}

// FileSniff is how many bytes at its beginning tell the type of a file.
const FileSniff = 512

// FileTypeOf is the type of a file by its beginning, whatever its name and its sender say: "" for none of ours. Text that is not XML
// counts as CSV.
func FileTypeOf(head []byte) FileType {
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return FilePDF
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return FilePNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return FileJPEG
	case !plainText(head):
		return ""
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(text, []byte("<")) {
		return FileXML
	}
	return FileCSV
}

// plainText reports whether the beginning of a file is UTF-8 without control characters. Its last character may be cut off.
func plainText(head []byte) bool {
	if len(head) >= FileSniff {
		for range utf8.UTFMax - 1 {
			if r, size := utf8.DecodeLastRune(head); r == utf8.RuneError && size == 1 {
				head = head[:len(head)-1]
			}
		}
	}
	return len(head) > 0 && utf8.Valid(head) && !bytes.ContainsFunc(head, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	})
}

// reservedNames can't be names of files on Windows, whatever their ending.
var reservedNames = []string{
	"con", "prn", "aux", "nul", "com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt0", "lpt1", "lpt2", "lpt3", "lpt4",
	"lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
}

// CleanFileName is a name that is safe to show and to save a file under: the last part of a path, without characters that a file
// system or a reader takes for something else, and with the ending of the type. No file of ours is found by its name.
func CleanFileName(given string, t FileType) string {
	if i := strings.LastIndexAny(given, `/\`); i >= 0 {
		given = given[i+1:]
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError || !unicode.IsPrint(r): // controls, invisible ones, and marks that turn the direction of text
			return -1
		case strings.ContainsRune(`<>:"|?*%;`, r):
			return '_'
		}
		return r
	}, given)
	for _, ending := range fileEndings[t] {
		if len(name) >= len(ending) && strings.EqualFold(name[len(name)-len(ending):], ending) {
			name = name[:len(name)-len(ending)]
			break
		}
	}
	name = strings.Trim(name, ". ")
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch {
	case name == "":
		name = "file"
	case slices.Contains(reservedNames, strings.TrimSpace(stem)):
		name = "file_" + name
	}
	ending := fileEndings[t][0]
	if r := []rune(name); len(r) > MaxFileName-len(ending) {
		name = strings.TrimRight(string(r[:MaxFileName-len(ending)]), ". ")
	}
	return name + ending
}

// File is an uploaded file, or the PDF that was made from an uploaded picture. Its bytes are in the object store.
type File struct {
	ID         uuid.UUID
	Purpose    FilePurpose
	OwnerID    uuid.UUID // the merchant whose file it is; zero for one of the house
	UploadedBy uuid.UUID
	Name       string // by CleanFileName
	Type       FileType
	Size       int64
	SHA256     []byte
	// SourceSHA256 is the digest of what was uploaded: of the picture where the file is the PDF made from it. Files with one source
	// are one and the same.
	SourceSHA256 []byte
	Pages        int       // of a PDF
	OriginalID   uuid.UUID // of the picture that the PDF was made from
	CreatedAt    time.Time
	DeletedAt    time.Time // when its retention ended; the row stays
}

// SealedFileKey is the key of a file's bytes, encrypted by a master key.
type SealedFileKey struct {
	FileID     uuid.UUID
	Ciphertext []byte
	MasterKey  string
}

// NewFile is a file to be stored, with its key.
type NewFile struct {
	File
	Key SealedFileKey
}

// FileUse is what uses a file.
type FileUse struct {
	FileID     uuid.UUID
	ObjectType string
	ObjectID   uuid.UUID
}

// FileRef names where a file's bytes are.
type FileRef struct {
	ID      uuid.UUID   `json:"id"`
	Purpose FilePurpose `json:"purpose"`
}

// FileVerdict is what the check of a file found.
type FileVerdict struct {
	Pages   int    `json:"pages,omitempty"`   // of a PDF
	Code    string `json:"code,omitempty"`    // of the broken rule; "" when the file is accepted
	Message string `json:"message,omitempty"` // continues after the field's name
}

// The rules that a file may break.
const (
	FileRuleType      = "file_type"            // it is none of the allowed types
	FileRuleSize      = "too_large"            // it has too many bytes
	FileRuleEmpty     = "empty"                // it has no bytes
	FileRuleDamaged   = "damaged"              // it can't be read as what it begins as
	FileRulePages     = "too_many_pages"       // or none
	FileRuleEncrypted = "encrypted"            // it needs a password, or is protected by one
	FileRuleScript    = "javascript"           // it has JavaScript
	FileRuleLaunch    = "launch"               // it starts programs or opens other files
	FileRuleEmbedded  = "embedded_file"        // it carries other files
	FileRuleSubmits   = "form_submits"         // it has a form that sends or loads data
	FileRuleMedia     = "multimedia"           // it has sound, video or three-dimensional content
	FileRuleAutomatic = "automatic_action"     // it does something by itself when it is opened
	FileRuleInflates  = "inflates"             // it has more compressed content than is allowed
	FileRulePolyglot  = "second_format"        // it is also a file of another format
	FileRuleMarkup    = "markup"               // its XML has a document type
	FileRuleUnchecked = "could_not_be_checked" // its check took too much time or memory
)
