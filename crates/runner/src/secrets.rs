//! Removes credentials from texts of the target: an error message may quote the key that it
//! refuses.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use plimsoll_engine::{Cause, FOLLOWED_REDIRECTS, ProbeFinding, ProbeReport};
use plimsoll_measure::TargetId;
use plimsoll_metrics::{FailureKind, REFUSED_USAGE, TargetInfo, UNLIKE_TOTAL};
use plimsoll_plan::{
    HeaderValue, Plan, REDACTED, Secret, is_shown_header, names_credential, secrets_of_query,
};

/// Shorter values are not credentials, and replacing them would garble other words.
const SHORTEST: usize = 4;
/// The same limit for values that only their place suggests to be credentials.
const SHORTEST_BY_PLACE: usize = 8;

/// The credentials of a plan.
#[derive(Clone)]
pub struct Secrets {
    /// Keys, and values of headers and queries that are named like credentials: replaced wherever
    /// they occur.
    known: Vec<String>,
    /// Other values of headers and queries: replaced where they stand alone.
    by_place: Vec<String>,
    /// The known ones, as servers may quote them.
    disguises: Disguises,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Collects the keys, and the values of headers and queries that may be credentials.
    pub fn of(plan: &Plan) -> Self {
        let keys = plan.targets.iter().filter_map(|target| target.key.as_ref().map(Secret::reveal));
        let of_targets = plan.targets.iter().flat_map(|target| {
            target.headers.iter().map(|(name, value)| (name.as_str(), HeaderValue::reveal(value)))
        });
        let of_scenarios = plan.scenarios.iter().flat_map(|scenario| {
            let http = scenario.http.iter().flat_map(|http| &http.headers);
            let headers = scenario.headers.iter().chain(http);
            headers.map(|(name, value)| (name.as_str(), value.as_str()))
        });
        let paths = plan.scenarios.iter().filter_map(|scenario| scenario.http.as_ref());
        let of_urls = plan.targets.iter().flat_map(|target| secrets_of_query(target.url.query()));
        let queries = paths.flat_map(|http| secrets_of_query(&http.path)).chain(of_urls);
        let headers = of_targets.chain(of_scenarios).filter(|(name, _)| !is_shown_header(name));
        let (named, others): (Vec<_>, Vec<_>) =
            headers.chain(queries).partition(|(name, _)| names_credential(name));
        let proxy = plan.reach.proxy.as_ref().and_then(|proxy| proxy.credentials.as_ref());
        let proxy = proxy.map(|(_, password)| password.as_str());
        let named = named.into_iter().map(|(_, value)| value).chain(proxy);
        let others = others.into_iter().map(|(_, value)| value);
        Self::new(keys.chain(named), others)
    }

    /// Collects known secrets, and values that only their place suggests to be secret.
    pub fn new<'a>(
        known: impl Iterator<Item = &'a str>,
        by_place: impl Iterator<Item = &'a str>,
    ) -> Self {
        // In `Bearer KEY`, the key alone is a secret too.
        let parts =
            |value: &'a str| [value].into_iter().chain(value.split_whitespace().next_back());
        let known: Vec<&str> = known.collect();
        // The word before a key is not part of it.
        let words = known.iter().filter_map(|value| value.split_whitespace().next_back());
        Self {
            disguises: Disguises::new(words),
            known: longest_first(known.iter().copied().flat_map(parts), SHORTEST),
            by_place: longest_first(by_place.flat_map(parts), SHORTEST_BY_PLACE),
        }
    }

    /// Whether a credential was not given: stored profiles have a word in its place, which the
    /// target would be sent.
    pub fn is_missing_one(&self) -> bool {
        self.known.iter().chain(&self.by_place).any(|secret| secret == REDACTED)
    }

    /// The text, with every credential replaced, also where it is quoted in part or in another
    /// spelling.
    pub fn redact(&self, text: &str) -> String {
        let mut text = self.known.iter().fold(text.to_owned(), |text: String, secret: &String| {
            text.replace(secret.as_str(), REDACTED)
        });
        for range in self.disguises.find(&text).into_iter().rev() {
            text.replace_range(range, REDACTED);
        }
        self.by_place.iter().fold(text, |text, secret| replace_words(&text, secret))
    }
}

/// The longest first, so that a shorter one does not leave half a key behind.
fn longest_first<'a>(values: impl Iterator<Item = &'a str>, shortest: usize) -> Vec<String> {
    let mut all: Vec<_> = values.map(str::to_owned).collect();
    all.retain(|secret| secret.len() >= shortest);
    all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    all.dedup();
    all
}

/// Replaces a secret where it is not part of a longer word.
fn replace_words(text: &str, secret: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(secret) {
        let (before, after) = (&rest[..at], &rest[at + secret.len()..]);
        let joined =
            before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        shown.push_str(before);
        shown.push_str(if joined { secret } else { REDACTED });
        rest = after;
    }
    shown + rest
}

// Credentials in the spellings in which servers quote them: in part, in other letters, with
// escapes of URLs, JSON and HTML, in base64 and in hexadecimal.

/// Number of consecutive characters that reveal a credential. Servers show fewer to say which key
/// it was.
const TELLING: usize = 8;
/// Number of times that escapes are undone, for escaped text within escaped text.
const LAYERS: usize = 3;

/// Parts of credentials, in any spelling that a text may use.
#[derive(Clone, Debug, Default)]
struct Disguises(HashSet<[char; TELLING]>);

impl Disguises {
    /// Those of credentials of at least [`TELLING`] characters.
    fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut parts = HashSet::new();
        for secret in secrets.filter(|secret| secret.chars().count() >= TELLING) {
            for spelling in spellings(secret) {
                let letters: Vec<char> = spelling.chars().map(folded).collect();
                let windows = letters.windows(TELLING);
                parts.extend(windows.filter_map(|part| <[char; TELLING]>::try_from(part).ok()));
            }
        }
        Self(parts)
    }

    /// Ranges of the text that contain parts of a credential, in order and without overlap.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut layer = Some(Layer::new(text));
        for _ in 0..=LAYERS {
            let Some(present) = layer else { break };
            found.extend(self.find_in(&present));
            layer = present.undone();
        }
        found.sort_by_key(|range| range.start);
        found.into_iter().fold(Vec::new(), |mut joined: Vec<Range<usize>>, next| {
            match joined.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => joined.push(next),
            }
            joined
        })
    }

    fn find_in<'l>(&'l self, layer: &'l Layer) -> impl Iterator<Item = Range<usize>> + 'l {
        layer.0.windows(TELLING).filter_map(|part| {
            let letters: [char; TELLING] = std::array::from_fn(|at| folded(part[at].letter));
            let (first, last) = (part.first()?, part.last()?);
            self.0.contains(&letters).then_some(first.from.start..last.from.end)
        })
    }
}

/// The credential itself, backwards, in hexadecimal, and in base64 wherever it stands between other
/// bytes.
fn spellings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), secret.chars().rev().collect()];
    all.push(secret.bytes().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }));
    for before in 0..3 {
        let bytes = [vec![0; before], secret.as_bytes().to_vec()].concat();
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            // Characters that share bits with bytes outside are left out at both ends.
            let first = (before * 8).div_ceil(6);
            let end = bytes.len() * 8 / 6;
            all.extend(text.get(first..end).map(str::to_owned));
        }
    }
    all
}

const fn folded(letter: char) -> char {
    letter.to_ascii_lowercase()
}

/// A letter, and the bytes of the text that encode it.
#[derive(Clone, Debug)]
struct Letter {
    letter: char,
    from: Range<usize>,
}

/// The text after this number of rounds of undoing escapes.
#[derive(Debug)]
struct Layer(Vec<Letter>);

impl Layer {
    fn new(text: &str) -> Self {
        let letters = text.char_indices();
        Self(
            letters
                .map(|(at, letter)| Letter { letter, from: at..at + letter.len_utf8() })
                .collect(),
        )
    }

    /// With one layer of escapes undone; `None` without any.
    fn undone(&self) -> Option<Self> {
        let mut letters = Vec::with_capacity(self.0.len());
        let mut at = 0;
        while let Some(rest) = self.0.get(at..).filter(|rest| !rest.is_empty()) {
            let (letter, length) = escape(rest).unwrap_or((rest[0].letter, 1));
            letters.push(Letter { letter, from: rest[0].from.start..rest[length - 1].from.end });
            at += length;
        }
        (letters.len() < self.0.len()).then_some(Self(letters))
    }
}

/// Entities of HTML for characters of keys, without `&` and `;`.
const ENTITIES: [(&str, char); 9] = [
    ("amp", '&'),
    ("apos", '\''),
    ("colon", ':'),
    ("equals", '='),
    ("gt", '>'),
    ("lt", '<'),
    ("plus", '+'),
    ("quot", '"'),
    ("sol", '/'),
];

/// The letter encoded by an escape at the start, and the length of the escape.
fn escape(text: &[Letter]) -> Option<(char, usize)> {
    let letter = |at: usize| text.get(at).map(|letter| letter.letter);
    match text.first()?.letter {
        '%' => Some((number(text, 1, 2, 16)?, 3)),
        '\\' => match letter(1)? {
            'u' => Some((number(text, 2, 4, 16)?, 6)),
            'x' => Some((number(text, 2, 2, 16)?, 4)),
            escaped if escaped.is_ascii_punctuation() => Some((escaped, 2)),
            _ => None,
        },
        '&' => {
            let end = text.iter().take(10).position(|letter| letter.letter == ';')?;
            match (letter(1)?, letter(2)?) {
                ('#', 'x' | 'X') => Some((number(text, 3, end - 3, 16)?, end + 1)),
                ('#', _) => Some((number(text, 2, end - 2, 10)?, end + 1)),
                _ => {
                    let name: String = text[1..end].iter().map(|letter| letter.letter).collect();
                    let known = ENTITIES.iter().find(|(known, _)| *known == name)?;
                    Some((known.1, end + 1))
                }
            }
        }
        _ => None,
    }
}

/// The character of this number.
fn number(text: &[Letter], start: usize, digits: usize, radix: u32) -> Option<char> {
    let digits = text.get(start..start + digits)?;
    let digits: String = digits.iter().map(|letter| letter.letter).collect();
    char::from_u32(u32::from_str_radix(&digits, radix).ok()?)
}

// The notes of a report: facts besides the numbers that a reader must know.

/// The most characters of a target's message.
const MAX_MESSAGE: usize = 200;

/// Notes on the results of the probe.
pub(crate) fn for_probe(probe: &ProbeReport, plan: &Plan, secrets: &Secrets) -> Vec<String> {
    let findings = probe.findings.iter();
    findings.map(|finding| format!("probe: {}", describe_finding(finding, plan, secrets))).collect()
}

/// A finding of the probe: the target, the cause and the fix. The scenario is named where there are
/// several.
pub(crate) fn describe_finding(finding: &ProbeFinding, plan: &Plan, secrets: &Secrets) -> String {
    let message = secrets.redact(&finding.message);
    match plan.scenarios.len() {
        // A target without a name of its own is named by its host, which the URL shows.
        1 if message.contains(&format!("//{}", finding.target)) => message,
        1 => format!("{}: {message}", finding.target),
        _ => format!("{} (scenario {}): {message}", finding.target, finding.scenario),
    }
}

/// Redirects that were followed.
pub(crate) fn for_redirects(causes: &[Cause], secrets: &Secrets) -> Option<String> {
    let cause = causes.iter().find(|cause| cause.kind == FOLLOWED_REDIRECTS)?;
    let first = shorten(&secrets.redact(cause.message()?));
    let s = if cause.count == 1 { "" } else { "s" };
    Some(format!(
        "{} redirect{s} followed, the first to {first}",
        plimsoll_rules::number::count(cause.count)
    ))
}

/// Why requests did not complete, with the first message of each target.
pub(crate) fn failures(
    causes: &[Cause],
    targets: &[TargetInfo],
    secrets: &Secrets,
) -> Vec<FailureKind> {
    let failures = causes.iter().filter(|cause| cause.kind != FOLLOWED_REDIRECTS);
    failures
        .map(|cause: &Cause| {
            let messages = cause.first.iter().filter_map(|(id, first)| {
                let target = targets.get(id.index())?;
                Some((target.name.clone(), shorten(&secrets.redact(first))))
            });
            FailureKind {
                kind: cause.kind.clone(),
                count: cause.count,
                messages: messages.collect(),
            }
        })
        .collect()
}

/// The message of each target whose requests failed: the first message of its most frequent kind of
/// failure in the run.
pub(crate) fn messages_of_targets(targets: &mut [TargetInfo], causes: &[Cause], secrets: &Secrets) {
    let others = [FOLLOWED_REDIRECTS, REFUSED_USAGE, UNLIKE_TOTAL];
    let failures = causes.iter().filter(|cause| !others.contains(&&*cause.kind));
    for (id, target) in (0..).map(TargetId).zip(targets) {
        let message = failures.clone().find_map(|cause| cause.message_of(id));
        target.failure = message.map(|message| shorten(&secrets.redact(message)));
    }
}

/// Where the connections went, for each target whose name has several addresses.
pub(crate) fn for_addresses(targets: &[TargetInfo]) -> Vec<String> {
    let several = targets.iter().filter(|target: &&TargetInfo| target.addresses.len() > 1);
    several
        .map(|target| {
            let of_each: Vec<_> = target
                .addresses
                .iter()
                .map(|(address, connections)| format!("{address} x {connections}"))
                .collect();
            let (name, count, list) = (&target.name, of_each.len(), of_each.join(", "));
            let silent = target.addresses.values().filter(|connections| **connections == 0).count();
            let gone = if silent > 0 { "; those with 0 were not reachable" } else { "" };
            format!("{name} has {count} addresses, connections: {list}{gone}")
        })
        .collect()
}

/// The message on one line, cut after [`MAX_MESSAGE`] characters.
fn shorten(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_anywhere_in_a_text() {
        let known = ["sk-1234", "Bearer abcdef", "x", ""];
        let by_place = ["production", "beta", "s1g=nature"];
        let secrets = Secrets::new(known.into_iter(), by_place.into_iter());
        for (text, shown) in [
            ("wrong key sk-1234!", "wrong key <redacted>!"),
            ("again\\nsk-1234", "again\\n<redacted>"),
            ("got `Bearer abcdef`", "got `<redacted>`"),
            ("token abcdef, again abcdef", "token <redacted>, again <redacted>"),
            ("an x is no secret", "an x is no secret"),
            ("?sig=s1g=nature&x", "?sig=<redacted>&x"),
            ("no beta; reproductions of production", "no beta; reproductions of <redacted>"),
        ] {
            assert_eq!(secrets.redact(text), shown);
        }
    }
}

#[cfg(test)]
mod disguise_tests {
    use super::*;

    const KEY: &str = "sk/Ab+cd12=zz/9Q";

    fn shown(text: &str) -> String {
        let disguises = Disguises::new([KEY].into_iter());
        let mut shown = text.to_owned();
        for range in disguises.find(text).into_iter().rev() {
            shown.replace_range(range, "_");
        }
        shown
    }

    /// Each spelling is another program's encoding of the key: `printf`, `jq -R @uri`, `base64`,
    /// `xxd -p`, `jq -R @html`, `json_encode` of PHP.
    #[test]
    fn no_spelling_of_a_key_is_shown() {
        for (text, expected) in [
            ("key sk/Ab+cd12=zz/9Q!", "key _!"),
            ("key SK/AB+CD12=ZZ/9Q!", "key _!"),
            ("first sk/Ab+cd12=z...", "first _..."),
            ("last ***+cd12=zz/9Q", "last ***_"),
            ("uri sk%2FAb%2Bcd12%3Dzz%2F9Q&x", "uri _&x"),
            ("uri sk%2fAb+cd12=zz%2f9Q", "uri _"),
            ("twice sk%252FAb%252Bcd12%253Dzz%252F9Q", "twice _"),
            ("php sk\\/Ab+cd12=zz\\/9Q", "php _"),
            ("json sk\\u002fAb\\u002Bcd12=zz/9Q", "json _"),
            ("html sk&#47;Ab&#x2B;cd12&equals;zz&sol;9Q", "html _"),
            // A character that shares its bits with the surrounding text stays.
            ("base64 c2svQWIrY2QxMj16ei85UQ== ", "base64 _Q== "),
            ("base64 of :KEY OnNrL0FiK2NkMTI9enovOVE=", "base64 of :KEY On_E="),
            ("base64 of me:KEY bWU6c2svQWIrY2QxMj16ei85UQ==", "base64 of me:KEY bWU6_Q=="),
            ("backwards Q9/zz=21dc+bA/ks", "backwards _"),
            ("hex 736b2f41622b636431323d7a7a2f3951", "hex _"),
            ("keys begin with sk/Ab", "keys begin with sk/Ab"),
            ("100 % of &amp; \\n \\u12 %zz &#; &", "100 % of &amp; \\n \\u12 %zz &#; &"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}

#[cfg(test)]
mod notes_tests {
    use super::*;
    use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};

    fn secrets() -> Secrets {
        Secrets::of(&plan_with_key("minimal", "sk-1234"))
    }

    #[test]
    fn each_kind_of_failure_shows_its_first_message_on_one_line_without_keys() {
        let cause = |kind: &str, first: &str| Cause {
            kind: kind.to_owned(),
            count: 3,
            first: if first.is_empty() {
                Vec::new()
            } else {
                vec![(TargetId(0), first.to_owned())]
            },
        };
        let causes = [cause("status 401", "bad\nkey sk-1234"), cause("reset", "")];
        let targets = [TargetInfo { name: "gw".to_owned(), ..TargetInfo::default() }];
        let found = failures(&causes, &targets, &secrets());
        let messages: Vec<_> = found.iter().map(|kind| kind.messages.get("gw")).collect();
        assert_eq!(messages, [Some(&"bad key <redacted>".to_owned()), None]);
        assert_eq!((found[0].kind.as_str(), found[0].count), ("status 401", 3));
        let redirects = [cause(FOLLOWED_REDIRECTS, "http://there/")];
        assert!(failures(&redirects, &targets, &secrets()).is_empty());
        let note = for_redirects(&redirects, &secrets());
        assert_eq!(note.as_deref(), Some("3 redirects followed, the first to http://there/"));
    }

    #[test]
    fn each_target_has_its_own_message() {
        let cause = |kind: &str, first: &[(u16, &str)]| Cause {
            kind: kind.to_owned(),
            count: 3,
            first: first.iter().map(|(id, text)| (TargetId(*id), (*text).to_owned())).collect(),
        };
        let causes = [
            cause(FOLLOWED_REDIRECTS, &[(0, "http://there/")]),
            cause("reset", &[(2, "broken sk-1234")]),
            cause("status 401", &[(1, "bad key"), (2, "no key")]),
        ];
        let mut targets = vec![TargetInfo::default(); 3];
        messages_of_targets(&mut targets, &causes, &secrets());
        let said: Vec<_> = targets.iter().map(|target| target.failure.as_deref()).collect();
        assert_eq!(said, [None, Some("bad key"), Some("broken <redacted>")]);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let note = shorten(&"é".repeat(300));
        assert_eq!(note.chars().count(), MAX_MESSAGE + 3);
    }

    fn plan(name: &str) -> Plan {
        plan_with_key(name, "any")
    }

    fn plan_with_key(name: &str, key: &str) -> Plan {
        let overrides = Overrides::default().with("key", "key", key);
        let profile = Profile::open(name).unwrap();
        load(&profile, &EnvVars::default(), &overrides, Purpose::Run).unwrap()
    }

    #[test]
    fn findings_of_the_probe_are_notes() {
        let finding = ProbeFinding {
            target: "a:1".to_owned(),
            scenario: "s".to_owned(),
            message: "429 (sk-1234)".to_owned(),
            fatal: false,
        };
        let mut probe = ProbeReport::default();
        (probe.requests, probe.findings) = (1, vec![finding]);
        for (profile, note) in [
            ("minimal", "probe: a:1: 429 (<redacted>)"),
            ("realistic", "probe: a:1 (scenario s): 429 (<redacted>)"),
        ] {
            let notes = for_probe(&probe, &plan(profile), &secrets());
            assert_eq!(notes, [note]);
        }
    }
}
