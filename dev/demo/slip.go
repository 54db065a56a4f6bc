package demo

import (
	"bytes"
	"fmt"
	"strings"
)

// slip is a bank's transfer slip as a PDF: one page with a title and lines in Helvetica, which every reader has. The lines must be
// ASCII. It begins with the catalog, as object 1.
func slip(title string, lines ...string) []byte {
	escaped := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`)
	var page bytes.Buffer
	fmt.Fprintf(&page, "BT /F1 18 Tf 60 760 Td (%s) Tj /F1 11 Tf 0 -40 Td", escaped.Replace(title))
	for _, l := range lines {
		fmt.Fprintf(&page, " (%s) Tj 0 -20 Td", escaped.Replace(l))
	}
	page.WriteString(" ET")
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", page.Len(), &page),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	var out, starts bytes.Buffer
	out.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, o := range objects {
		fmt.Fprintf(&starts, "%010d 00000 n \n", out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n%s", len(objects)+1, &starts)
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return out.Bytes()
}
