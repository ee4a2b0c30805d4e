//! The table of flags, against the flags of other tools and against ours.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::*;
use crate::command::{Cli, flags_of};

fn reading(words: &[&str]) -> Reading {
    let line = ["plimsoll"].into_iter().chain(words.iter().copied());
    read(&line.map(OsString::from).collect::<Vec<_>>(), known_flags)
}

#[test]
fn bounds_of_vllm_are_one_value() {
    let Reading::Ours(words, _) =
        reading(&["llm", "h:1", "--goodput", "ttft:500", "tpot:50", "h:2"])
    else {
        panic!("refused")
    };
    assert_eq!(words[3..], ["--goodput", "ttft:500 tpot:50", "h:2"]);
}

/// Lines as users of other tools type them, and ours.
const ACCEPTED: [(&str, &str); 26] = [
    ("http -z 30s -c 50 http://h/", "http -d 30s -c 50 http://h/"),
    ("http -t12 -c400 -d30s http://h/", "http --set workers=12 -c400 -d30s http://h/"),
    ("http -t2 -c8 -R100 --latency http://h/", "http --set workers=2 -c8 --rate 100 http://h/"),
    (
        "http -n 9 -m POST -T application/json -D b http://h/",
        "http -n 9 -m POST -H content-type:application/json --body @b http://h/",
    ),
    ("http -n 9 -disable-keepalive -h2 http://h/", "http -n 9 --no-keepalive --http2=10 http://h/"),
    ("http -t 5s --no-tui -j http://h/", "http --timeout 5s --ui lines --json http://h/"),
    ("http -rate=50/1s -duration=10s http://h/", "http --rate 50 -d 10s http://h/"),
    ("http -workers 5 -max-workers 9 http://h/", "http -c 9 http://h/"),
    ("http --vus 10 --duration 30s http://h/", "http -c 10 --duration 30s http://h/"),
    ("http -u 10 --rps 20 http://h/", "http -c 10 --rate 20 http://h/"),
    (
        "http -X POST --data a=b -u me:pw http://h/",
        "http -X POST --body a=b --basic-auth me:pw http://h/",
    ),
    ("http -d {\"a\":1} -sS -k http://h/", "http --body {\"a\":1} -sS -k http://h/"),
    (
        "http -s --max-time 5 --location http://h/",
        "http --quiet --timeout 5 --redirects 50 http://h/",
    ),
    ("http --users 5 --run-time 1m --headless -H http://h", "http -c 5 -d 1m http://h"),
    ("http --requests 9 -c 3 http://h/", "http -n 9 -c 3 http://h/"),
    ("llm --url http://h --concurrency 4 --streaming", "llm http://h --concurrency 4"),
    ("llm -u http://h -m a --request-count 9", "llm http://h -m a -n 9"),
    ("llm h:1 --synthetic-input-tokens-mean 9 --output-tokens-mean 8", "llm h:1 --isl 9 --osl 8"),
    (
        "llm h:1 --endpoint-type chat --benchmark-duration 30",
        "llm h:1 --protocol openai-chat -d 30",
    ),
    ("llm h:1 --extra-inputs top_k:5 --random-seed 7", "llm h:1 --set parameters.top_k=5 --seed 7"),
    (
        "llm --base-url http://h --num-prompts 9 --request-rate 5",
        "llm http://h -n 9 --rate 5 --arrivals=poisson",
    ),
    (
        "llm h:1 --random-input-len 9 --random-output-len 8 --ignore-eos",
        "llm h:1 --isl 9 --osl 8 --ignore-eos",
    ),
    (
        "llm h:1 --max-concurrency 4 --top-p 0.9 --save-result",
        "llm h:1 -c 4 --set parameters.top_p=0.9",
    ),
    (
        "llm --target http://h --rate-type poisson --rate 5 --max-seconds 9",
        "llm http://h --arrivals poisson --rate 5 -d 9",
    ),
    (
        "llm --target http://h --profile sweep --data a.jsonl",
        "llm http://h --sweep --prompts a.jsonl",
    ),
    (
        "run p --vus 10 --duration 30s --no-connection-reuse",
        "run p -c 10 --duration 30s --set requests_per_connection.min=1 --set requests_per_connection.max=1",
    ),
];

/// Lines that have to be typed otherwise, and a part of the hint.
const REFUSED: [(&str, &str); 17] = [
    ("http -q 50 http://h/", "`-q` is a flag of oha, and of each client of hey; use --rate N"),
    ("http -s script.lua http://h/", "plimsoll profile init"),
    ("http --urls-from-file u.txt", "--urls FILE"),
    ("http -F a=b http://h/", "--body @FILE"),
    ("http --aws-sigv4 x http://h/", "requests are not signed for AWS"),
    ("http -output r.bin http://h/", "--out DIR"),
    ("http -o r.json http://h/", "--out DIR"),
    ("http --retry 3 http://h/", "failed requests are not sent again"),
    ("http --http3 http://h/", "HTTP/1.1 and HTTP/2"),
    ("http --spawn-rate 5 http://h/", "--stages 0..100:20s"),
    ("http --oauth2-bearer x http://h/", "authorization: Bearer"),
    ("run s.js --stage 30s:10", "--stages"),
    ("llm h:1 --request-rate inf", "-c N"),
    ("llm h:1 --warmup-request-count 5", "--warmup TIME"),
    ("llm h:1 --data prompt_tokens=9,output_tokens=8", "--isl N and --osl N"),
    ("attack -rate=5 http://h/", "`attack` is a command of vegeta; use plimsoll http URL"),
    ("http://h/", "a command comes first: plimsoll http URL"),
];

#[test]
fn habits_of_other_tools_are_accepted_or_hinted_at() {
    let mut wrong = Vec::new();
    for (line, ours) in ACCEPTED {
        let words: Vec<_> = line.split(' ').collect();
        match reading(&words) {
            Reading::Ours(read, _) => {
                let read: Vec<_> = read[1..].iter().map(|word| word.to_str().unwrap()).collect();
                wrong.extend((read.join(" ") != ours).then(|| format!("{line}: {read:?}")));
            }
            Reading::Refused(hint) => wrong.push(format!("{line}: {hint}")),
        }
    }
    for (line, part) in REFUSED {
        let words: Vec<_> = line.split(' ').collect();
        let read = reading(&words);
        let is_right = matches!(&read, Reading::Refused(hint) if hint.contains(part));
        wrong.extend((!is_right).then(|| format!("{line}: {read:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn notes_say_how_a_flag_was_read_without_its_secret() {
    let notes = |line: &str| match reading(&line.split(' ').collect::<Vec<_>>()) {
        Reading::Ours(_, notes) => notes.join("; "),
        Reading::Refused(hint) => panic!("{line}: {hint}"),
    };
    let said = notes("llm h:1 --request-rate 5 --api-key sk-1 --streaming");
    for part in [
        "`--request-rate 5` is read as `--rate 5`",
        "`--arrivals=poisson` is added",
        "`--streaming` has no effect",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("sk-1") && said.contains("--api-key"), "{said}");
    assert!(!notes("http --user me:pw http://h").contains("pw"));
}

#[test]
fn our_own_flags_stay_as_they_are() {
    for line in [
        "profile show minimal",
        "profile --help",
        "-V",
        "http u -c100 -d 5s -X PUT",
        "http -q u",
        "http u --body -z --http2 4",
        "run x -Ha:b --stages 5:5s -- -z",
        "run x --frobnicate",
        "knee x --users --slo ttft<1s:99%",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let own = ["plimsoll"].into_iter().chain(words.iter().copied()).map(OsString::from);
        assert_eq!(reading(&words), Reading::Ours(own.collect(), Vec::new()), "{line}");
    }
}

#[test]
fn flags_of_a_command_inside_a_command_are_ours() {
    let line = ["plimsoll", "suite", "tiers", "--passes", "4", "-d", "5s"].map(OsString::from);
    assert_eq!(read(&line, flags_of), Reading::Ours(line.to_vec(), Vec::new()));
}

/// Tool, command of ours, and flags, as the tools' own help has them.
fn tools() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = include_str!("tools.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut columns = line.split('\t');
        std::array::from_fn(|_| columns.next().unwrap())
    })
}

/// The flags of each command, which are many to build.
static KNOWN: LazyLock<Vec<(String, Vec<OwnFlag>)>> = LazyLock::new(|| {
    let names = Cli::command().get_subcommands().map(|own| own.get_name().to_owned()).collect();
    let names: Vec<String> = names;
    names.into_iter().map(|name| (name.clone(), flags_of(&[&name]))).collect()
});

fn known_flags(words: &[&str]) -> Vec<OwnFlag> {
    let known = KNOWN.iter().find(|(name, _)| *name == words[0]);
    known.map(|(_, own)| own.clone()).unwrap_or_default()
}

/// A word that the parser would refuse, after a line was read.
fn unexpected(line: &[&str]) -> Option<String> {
    let words: Vec<_> = ["plimsoll"].iter().chain(line).map(OsString::from).collect();
    let Reading::Ours(words, _) = read(&words, known_flags) else { return None };
    let own = known_flags(line);
    let is_known = |word: &str| {
        let is_cluster = |own: &OwnFlag| own.name.len() == 2 && word.starts_with(&own.name);
        let is_long = word.starts_with("--");
        own.iter().any(|own| own.name == split(word).0 || !is_long && is_cluster(own))
    };
    let mut flags = words.iter().filter_map(|word| word.to_str()).filter(|word| is_flag(word));
    flags.find(|word| !is_known(word)).map(str::to_owned)
}

#[test]
fn no_flag_of_another_tool_is_an_unexpected_argument() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for [tool, command, flags] in tools() {
        for flag in flags.split(' ') {
            let flag = flag.replace('*', "x");
            let lines =
                [&["5"][..], &["a:b"], &[]].map(|value| [&[command, &*flag], value].concat());
            let unknown = lines.iter().find_map(|line| unexpected(line));
            wrong.extend(unknown.map(|word| format!("{tool} {flag}: {word}")));
            seen += 1;
        }
    }
    assert!(seen > 900 && wrong.is_empty(), "{seen}: {wrong:#?}");
}

#[test]
fn a_row_is_reached() {
    let all = "http,llm,run,versus,knee";
    for (index, one) in ROWS.iter().enumerate().filter(|(_, row)| row.condition.is_empty()) {
        for later in &ROWS[index + 1..] {
            let shadowed = |command: &str| one.is_for(command);
            let commands = if later.commands.is_empty() { all } else { later.commands };
            let same =
                later.flags.split(' ').find(|flag| one.flags.split(' ').any(|own| own == *flag));
            let is_shadowed = same.is_some() && commands.split(',').all(shadowed);
            assert!(!is_shadowed, "{:?} of {} is listed after its row for all", same, later.text);
        }
    }
}

/// The flags that a hint for a command may name: its own, and the flags of equivalent commands.
fn nameable(command: &str, text: &str) -> Vec<String> {
    let named = text.split("plimsoll ").nth(1);
    let named = named.and_then(|rest| rest.split([' ', '`', ',', ';']).next());
    let named = named.filter(|name| !name.is_empty() && !name.starts_with('-'));
    let commands = [command, "http", "llm", "run", "knee"].into_iter().chain(named);
    let flags = commands.flat_map(|command| known_flags(&[command])).map(|own| own.name);
    flags.chain(["--version".to_owned()]).collect()
}

/// A hint that names a flag which no command has would lead nowhere.
#[test]
fn texts_name_flags_that_their_command_has() {
    let mut wrong = Vec::new();
    for row in ROWS.iter() {
        let commands = if row.commands.is_empty() { "run" } else { row.commands };
        for command in commands.split(',') {
            let flags = nameable(command, row.text);
            let words = row.text.split([' ', ',', ';', '`', '(', ')', ':']);
            let is_flag =
                |word: &&str| word.starts_with('-') && word.len() > 1 && !word.contains('=');
            let unknown = words.filter(is_flag).find(|word| !flags.iter().any(|own| own == word));
            wrong.extend(unknown.map(|flag| format!("{command}: {flag}: {}", row.text)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The keys of a profile that a row names.
fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("--set ").skip(1).chain(text.split('`').skip(1).step_by(2));
    let keys = parts
        .map(|part| part.trim_matches('\'').split(['=', ':', ' ', ',']).next().unwrap_or_default());
    let is_key = |key: &&str| {
        key.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'))
            && !matches!(*key, "" | "plimsoll")
    };
    // Below `parameters` are the provider's own.
    let others = ["min_tokens", "stream_options"];
    keys.filter(move |key| !others.contains(key))
        .filter(is_key)
        .filter(|key| !key.starts_with("parameters."))
        .flat_map(|key| key.split('.'))
}

#[test]
fn rows_name_keys_that_profiles_have() {
    let mut wrong = Vec::new();
    let schema = include_str!("../../../../docs/reference/profile.schema.json");
    for row in ROWS.iter() {
        let mut keys = keys_in(row.text).chain(keys_in(row.reading));
        let unknown = keys.find(|name| !schema.contains(&format!("\"{name}\":")));
        wrong.extend(unknown.map(|key| format!("{key}: {} {}", row.reading, row.text)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `docs/reference/other-tools.md` is made from the table.
#[test]
fn the_reference_page_of_other_tools_is_up_to_date() {
    let mut page = include_str!("other-tools.txt").to_owned();
    for row in ROWS.iter().filter(|row| row.flags.starts_with('-')) {
        let Row { flags, tools, commands, condition, reading, text } = row;
        let here = match (*reading, *text) {
            ("", text) => text.to_owned(),
            (reading, "") => format!("`{reading}`"),
            (reading, text) => format!("`{reading}`: {text}"),
        };
        let commands = commands.replace(',', " ");
        let line = format!("{flags} | {tools} | {commands} | {condition} | {here}");
        let _ = writeln!(
            page,
            "| {} |",
            line.replace('|', "\\|").replace("\\| ", "| ").replace(" \\|", " |")
        );
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/other-tools.md");
    expect_test::expect_file![path].assert_eq(&page);
}
