package sandbox

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// defaultAnswerDelay is the default of --answer-delay.
const defaultAnswerDelay = 2 * time.Second

// defaultLateDelay is the default of --late-delay.
const defaultLateDelay = 30 * time.Second

// Command runs a sandbox as a process of its own until ctx ends. When it is ready it prints one line to standard output:
// "READY http://127.0.0.1:PORT".
//
// The flags are --listen ADDRESS, --control ADDRESS (the gateway's own when empty), --data DIR,
// --answer-delay and --late-delay DURATION (a negative one waits for POST /control/release), --magic-amounts=BOOL,
// --string-expiry, --msisdn hashed|masked|plain, --rule-limit DURATION, --daily-limit SHILLINGS,
// --callback-hosts LIST, --consumer-key, --consumer-secret, --shortcode, --passkey, --payout-shortcode,
// --initiator, --initiator-password, --security-credential.
func Command(ctx context.Context, args []string) error { return run(ctx, args, os.Stdout) }

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	cfg, err := parseFlags(args)
	if err != nil {
		return err
	}
	s, err := New(cfg)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	if _, err := fmt.Fprintln(out, "READY "+s.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func parseFlags(args []string) (Config, error) {
	cfg := Config{}
	flags := flag.NewFlagSet("momo-sandbox", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run returns the error
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "address of the gateway")
	flags.StringVar(&cfg.Control, "control", "", "address of the page and control endpoints")
	flags.StringVar(&cfg.Dir, "data", "", "directory of the books")
	flags.DurationVar(&cfg.AnswerDelay, "answer-delay", defaultAnswerDelay, "how long a payer takes")
	flags.DurationVar(&cfg.LateDelay, "late-delay", defaultLateDelay, "additional time of late actions")
	flags.DurationVar(&cfg.RuleLimit, "rule-limit", 0, "how long the same payer can't pay the same amount")
	flags.Int64Var(&cfg.DailyLimit, "daily-limit", 0, "shillings that a wallet may move in a day")
	flags.BoolVar(&cfg.MagicAmounts, "magic-amounts", true, "amounts select behaviours")
	flags.BoolVar(&cfg.StringExpiry, "string-expiry", false, "expires_in is a string")
	flags.StringVar(&cfg.MSISDN, "msisdn", "", "form of numbers in confirmations")
	hosts := flags.String("callback-hosts", "", "hosts that callbacks may go to, separated by commas")
	flags.StringVar(&cfg.ConsumerKey, "consumer-key", "", "")
	flags.StringVar(&cfg.ConsumerSecret, "consumer-secret", "", "")
	flags.StringVar(&cfg.Shortcode, "shortcode", "", "")
	flags.StringVar(&cfg.Passkey, "passkey", "", "")
	flags.StringVar(&cfg.PayoutShortcode, "payout-shortcode", "", "")
	flags.StringVar(&cfg.InitiatorName, "initiator", "", "")
	flags.StringVar(&cfg.InitiatorPassword, "initiator-password", "", "")
	flags.StringVar(&cfg.SecurityCredential, "security-credential", "", "")
	if err := flags.Parse(args); err != nil {
		return Config{}, fmt.Errorf("momo sandbox: %w", err)
	}
	if flags.NArg() > 0 {
		return Config{}, fmt.Errorf("momo sandbox: %q is not a flag", flags.Arg(0))
	}
	if *hosts != "" {
		cfg.CallbackHosts = strings.Split(*hosts, ",")
	}
	return cfg, nil
}
