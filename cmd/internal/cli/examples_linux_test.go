package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dibslock/dibs/cmd/internal/config"
)

const examples = "../../../examples"

// TestExamplesOfTheRunner: the configurations are right, and the one command runs.
func TestExamplesOfTheRunner(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"runner.yaml", "invoices/dibs.yaml"} {
		if _, err := config.Load(filepath.Join(examples, file)); err != nil {
			t.Error(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dibs := filepath.Join(t.TempDir(), "dibs")
	if err := os.Symlink(exe, dibs); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", examples+"/invoices/run.sh")
	for _, v := range os.Environ() {
		if !regexp.MustCompile(`^DIBS_`).MatchString(v) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DIBS="+dibs)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for want, n := range map[string]int{
		`answers: [0-9a-f-]{36} succeeded`:                             1,
		`answers: dibs: "job:invoices" is held by .*job invoices, run`: 1,
		`answers: exit 0`:                                   1,
		`answers: exit 75`:                                  1,
		`(?m)^[AB]  msg=attempt .*job=invoices`:             2,
		`(?m)^[AB]  msg=contention .*holder=.*retry_after=`: 1,
		`(?m)^[AB]  msg=completion .*state=succeeded`:       1,
		`sends the invoices, fence [1-9]`:                   1,
	} {
		if got := len(regexp.MustCompile(want).FindAll(out, -1)); got != n {
			t.Errorf("%d times %s, want %d, in\n%s", got, want, n, out)
		}
	}
}
