package guard

// Guards tells whether commands have a guardian on this system.
const Guards = true

// Limits tells what cannot be promised on this system; "" if all can.
func Limits() string {
	if procIsOurs() {
		return ""
	}
	return "/proc doesn't show this PID namespace; a descendant that left the group of the command, by setsid, is neither found nor killed"
}
