package quorum

// A Kind is what a node's answer says.
type Kind uint8

// The answers.
const (
	Silent Kind = iota // none yet
	Failed             // none will come
	NoVote             // the node may not vote: it lost its memory
	Held               // another has the name, or the claim is lost there
	Mine               // the claim has the name, under Counter
	Passed             // the claim has the name, and Counter has passed the fence that was asked for
	Behind             // the claim has the name, and Counter has not reached the fence that was asked for
)

// A Vote is a node's answer to a request about a claim.
type Vote struct {
	Kind    Kind
	Counter uint64
}

// A Verdict is what a client makes of the votes that it has.
type Verdict uint8

// The verdicts.
const (
	Wait    Verdict = iota // for more votes
	Granted                // under the fence
	Settle                 // ask again, by Settle with the fence
	Refused                // a majority has answered, and the name is another's
	Unknown                // no majority can answer
)

// Majority is the smallest number of n nodes that any two such groups share one of.
func Majority(n int) int { return n/2 + 1 }

// Asked judges the answers to Ask. If a majority gave the same counter, that is
// the fence, and no second round is needed.
func Asked(votes []Vote) (v Verdict, fence uint64) {
	q, most := Majority(len(votes)), uint64(0)
	mine, held, open := 0, 0, 0
	for i, o := range votes {
		switch o.Kind {
		case Silent:
			open++
		case Held:
			held++
		case Mine:
			mine++
			most = max(most, o.Counter)
			same := 1
			for _, p := range votes[:i] {
				if p == o {
					same++
				}
			}
			if same >= q {
				return Granted, o.Counter
			}
		}
	}
	if mine >= q {
		return Settle, most
	}
	return short(q, mine, held, open), 0
}

// Mergeable tells whether a majority that gives the same counter can still come
// together: whether votes that are not in yet could spare a second round.
func Mergeable(votes []Vote) bool {
	q, open := Majority(len(votes)), 0
	for _, o := range votes {
		if o.Kind == Silent {
			open++
		}
	}
	for i, o := range votes {
		same := open
		for _, p := range votes[:i+1] {
			if o.Kind == Mine && p == o {
				same++
			}
		}
		if same >= q && o.Kind == Mine {
			return true
		}
	}
	return false
}

// Settled judges the answers to Settle with fence. If the counter has passed it
// somewhere, and no majority can come together without that node, the fence to
// settle on is the larger one.
func Settled(votes []Vote, fence uint64) (Verdict, uint64) {
	q, most := Majority(len(votes)), fence
	mine, passed, held, open := 0, 0, 0, 0
	for _, o := range votes {
		switch o.Kind {
		case Silent:
			open++
		case Held:
			held++
		case Mine:
			mine++
		case Passed:
			passed++
			most = max(most, o.Counter)
		}
	}
	switch {
	case mine >= q:
		return Granted, fence
	case mine+open >= q:
		return Wait, fence
	case mine+passed >= q:
		return Settle, most
	}
	return short(q, mine+passed, held, open), fence
}

// Renewed judges the answers to Renew. The claim is lost for certain only if no
// majority can have it, whatever those say that did not answer. Nodes that are
// behind can be brought up by Settle, if one at least knows the claim under its
// fence.
func Renewed(votes []Vote) Verdict {
	q := Majority(len(votes))
	mine, behind, held, open := 0, 0, 0, 0
	for _, o := range votes {
		switch o.Kind {
		case Silent:
			open++
		case Held, Passed:
			held++
		case Mine:
			mine++
		case Behind:
			behind++
		}
	}
	if mine == 0 && open == 0 {
		held += behind // nobody knows this fence
	}
	switch {
	case mine >= q:
		return Granted
	case held > len(votes)-q:
		return Refused
	case open > 0:
		return Wait
	case mine > 0 && mine+behind >= q:
		return Settle
	}
	return Unknown
}

// short judges votes that are too few: mine of q, with open ones to come.
func short(q, mine, held, open int) Verdict {
	switch {
	case mine+open >= q, mine+held < q && mine+held+open >= q:
		return Wait
	case mine+held >= q:
		return Refused
	}
	return Unknown
}
