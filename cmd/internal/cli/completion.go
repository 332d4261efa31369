package cli

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibslock/dibs/driver"
)

func newCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell's completion script",
		Long: `Print the script that completes dibs in a shell: commands, flags, and the keys that
are held. To load it:

  bash        source <(dibs completion bash)         in ~/.bashrc, with bash-completion
  zsh         source <(dibs completion zsh)          in ~/.zshrc, after compinit
  fish        dibs completion fish | source          in ~/.config/fish/config.fish
  powershell  dibs completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: shells,
		Args:      cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef("want one of: %s", strings.Join(shells, ", "))
			}
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			}
			return root.GenPowerShellCompletionWithDesc(w)
		},
	}
}

// completeTime is how long a completion may keep a person waiting.
const completeTime = 2 * time.Second

// completesKeys lets a command's first argument be completed by what is held now.
func completesKeys(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return heldKeys(cmd, begun), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// heldKeys are the keys that begin so. It makes no store that is not there.
func heldKeys(cmd *cobra.Command, begun string) (keys []string) {
	var flag text
	if f := cmd.Flags().Lookup("store"); f != nil && f.Changed {
		flag = text{value: f.Value.String(), given: true}
	}
	p, ok := existing(flag)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	all, err := statuses(ctx, p, begun, func(string) bool { return true })
	if err != nil {
		return nil
	}
	for _, k := range all {
		keys = append(keys, k.Key)
	}
	return keys
}

// existing is the store that choose would choose, if it is there.
func existing(flag text) (place, bool) {
	if !flag.given && os.Getenv("DIBS_STORE_URL") == "" && os.Getenv("DIBS_STORE_URL_FILE") == "" {
		if _, err := os.Stat(filepath.Join(stateDir(os.Geteuid()), "locks.db")); err != nil {
			return place{}, false
		}
	}
	p, err := choose(flag)
	if err != nil {
		return place{}, false
	}
	_, err = os.Stat(p.file())
	return p, p.file() == "" || !errors.Is(err, fs.ErrNotExist)
}

// file is the path of a store that is a file; "": it is none.
func (p place) file() string {
	u, err := driver.ParseURL(p.url)
	if err != nil || u.Scheme != "sqlite" {
		return ""
	}
	path := u.Path
	if u.Opaque != "" {
		path, _ = url.PathUnescape(u.Opaque)
	}
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
