//! Targets that do different work.

use plimsoll_measure::{FinishReason, PairedTurn, Rng, Seed};
use plimsoll_metrics::{Judgement, RunEnd};
use plimsoll_report::Style;
use plimsoll_report::screen::Rest;
use plimsoll_versus::{Facts, Versus, WorkloadMismatch, combine, csv, judge, prometheus, screen};

use crate::screens::{full, summary};
use crate::simulation::{Simulation, direct, target};

fn simulation(run: u64) -> Simulation {
    let mut targets = direct(0.0);
    targets.remove(1);
    targets.push(target("g", 100.0));
    Simulation { run, seconds: 22, rate: 4, ..Simulation::new(targets) }
}

/// A model whose answers vary: most of them reason, some call tools, some are truncated.
fn vary(turn: &mut PairedTurn, rng: &mut Rng) {
    let length = u32::try_from(rng.below(400)).unwrap() + 1;
    turn.output_tokens = length;
    turn.content_bytes = length * 4;
    turn.reasoning = rng.below(10) < 8;
    turn.tool_calls = rng.below(10) < 3;
    let reason = if rng.below(10) < 5 { FinishReason::Stop } else { FinishReason::Length };
    turn.finish_reason = Some(reason);
}

/// A gateway's change of an answer.
type Gateway = fn(&mut PairedTurn);

/// The same answer on both targets, as from a deterministic model.
fn fixed(turn: &mut PairedTurn, _: &mut Rng) {
    turn.output_tokens = 100;
    turn.content_bytes = 400;
    (turn.reasoning, turn.tool_calls) = (true, true);
    turn.finish_reason = Some(FinishReason::ToolCalls);
}

fn compared(
    simulation: &Simulation,
    model: fn(&mut PairedTurn, &mut Rng),
    gateway: impl Fn(&mut PairedTurn),
) -> Versus {
    let rng = &mut Seed(45).rng("answers", simulation.run);
    let mut blocks = simulation.blocks();
    for block in &mut blocks {
        block.turns.iter_mut().flatten().for_each(|turn| model(turn, rng));
        gateway(block.turns[1].as_mut().unwrap());
    }
    judge(&simulation.facts(), &blocks)
}

fn about(versus: &Versus) -> String {
    let all = versus.workload_mismatch.iter().map(|found| found.about.as_str());
    all.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_part_that_a_gateway_deletes_is_named() {
    let cases: [(Gateway, &str); 7] = [
        (|turn| turn.reasoning = false, "reasoning"),
        (|turn| turn.tool_calls = false, "tool calls"),
        (|turn| turn.content_bytes /= 2, "content bytes"),
        (|turn| turn.output_tokens /= 2, "output tokens"),
        (|turn| turn.input_tokens += 300, "input tokens"),
        (|turn| turn.status = 206, "status 200, status 206"),
        (|_| {}, ""),
    ];
    for (gateway, expected) in cases {
        for model in [fixed, vary] {
            assert_eq!(about(&compared(&simulation(0), model, gateway)), expected);
        }
    }
    let reason = |turn: &mut PairedTurn| turn.finish_reason = None;
    assert_eq!(about(&compared(&simulation(0), fixed, reason)), "finish reason `tool_calls`");
    let usage = |turn: &mut PairedTurn| turn.output_tokens = 0;
    assert_eq!(about(&compared(&simulation(0), fixed, usage)), "token counts");
    let all = |turn: &mut PairedTurn| turn.content_bytes = 0;
    assert_eq!(about(&compared(&simulation(0), fixed, all)), "content");
}

/// At the level of the test, one of 1,000 runs may differ by chance.
#[test]
fn equal_targets_whose_answers_vary_do_the_same_work() {
    let named =
        (0..300).filter(|run| !about(&compared(&simulation(*run), vary, |_| {})).is_empty());
    assert!(named.count() <= 2);
}

/// The model's answers vary in length; half of each answer is missing.
#[test]
fn lost_content_is_named_before_any_time_and_times_are_marked() {
    let versus = compared(&simulation(0), fixed, |turn| {
        (turn.reasoning, turn.content_bytes) = (false, 200);
    });
    let sentence = "g returns other answers than direct: reasoning in 0% instead of 100%, 200 \
                    content bytes instead of 400.";
    let shown = screen(&versus, &summary(RunEnd::Complete), Rest::Flag).whole(Style::plain(400));
    for text in [&shown, &full(&versus, 400)] {
        let named = text.find(sentence).expect(text);
        assert!(named < text.find("TTFT").unwrap(), "{text}");
    }
    assert!(shown.contains("] *"), "{shown}");
    let slower = versus.claims.iter().find(|claim| claim.about == "ttft" && claim.holds).unwrap();
    assert!(slower.finding().text().ends_with(" against direct, for other answers."), "{slower:?}");
    assert!(versus.differences.iter().all(|found| found.other_answers));
    assert!(csv(&versus).lines().skip(1).all(|line| line.contains(",differ,")));
    assert!(prometheus(&versus).contains("plimsoll_versus_answers_differ{target=\"g\"} 1"));
    let verdict = "DONE: answers differ: times marked * are not comparable (measurement: valid)\n";
    assert!(shown.ends_with(verdict), "{shown}");
    let versus = compared(&simulation(0), fixed, |turn| {
        (turn.tool_calls, turn.ttft) = (false, None);
    });
    let shown = screen(&versus, &summary(RunEnd::Complete), Rest::Flag).whole(Style::plain(400));
    let verdict = "DONE: answers differ: their times are not comparable (measurement: valid)\n";
    assert!(shown.ends_with(verdict), "{shown}");
    // Different answers must not pass a threshold on times, but a failed threshold still fails.
    let simulation = simulation(0);
    for (margin, passes) in [(1.0, false), (1e-6, false)] {
        let known = Facts { margin: Some(margin), ..simulation.facts() };
        let mut blocks = simulation.blocks();
        for block in &mut blocks {
            block.turns[1].as_mut().unwrap().input_tokens = 40;
        }
        let judged = judge(&known, &blocks).judgement_of_bounds();
        assert_eq!(judged == Judgement::Pass, passes);
        assert_eq!(matches!(judged, Judgement::Inconclusive(_)), margin > 0.5, "{judged:?}");
    }
    // Several rounds report it once.
    let all = combine(&[versus.clone(), versus.clone()]).unwrap();
    let twice = versus.workload_mismatch.iter().cloned();
    let twice = twice.map(|found| WorkloadMismatch { pairs: 2 * found.pairs, ..found });
    assert_eq!(all.workload_mismatch, twice.collect::<Vec<_>>());
}

/// Answers of a named model, whose text depends on the block alone.
fn compared_texts(targets: &[&'static str], gateway: impl Fn(u64, &mut [PairedTurn])) -> Versus {
    let mut all = vec![direct(0.0)[0].clone()];
    all.extend(targets.iter().map(|name| target(name, 100.0)));
    let simulation = Simulation { seconds: 22, rate: 4, ..Simulation::new(all) };
    let mut blocks = simulation.blocks();
    for block in &mut blocks {
        let mut turns: Vec<PairedTurn> = block.turns.iter().flatten().copied().collect();
        for turn in &mut turns {
            (turn.content_bytes, turn.model) = (40, 77);
            turn.content_digest = u32::try_from(block.index).unwrap() + 1_000;
        }
        gateway(block.index, &mut turns);
        block.turns = turns.into_iter().map(Some).collect();
    }
    judge(&simulation.facts(), &blocks)
}

#[test]
fn another_model_or_text_is_named_where_it_is_proven() {
    let named = |targets: &[&'static str], gateway: fn(u64, &mut [PairedTurn])| {
        about(&compared_texts(targets, gateway))
    };
    let model = "the same `model` as direct";
    assert_eq!(named(&["g"], |_, turns| turns[1].model = 5), model);
    // One answer in four falls back to another model.
    assert_eq!(named(&["g"], |n, turns| turns[1].model += u32::from(n % 4 == 0)), model);
    // Both fall back at random, or one names no model.
    assert_eq!(named(&["g"], |n, turns| turns[usize::from(n % 2 == 0)].model = 5), "");
    assert_eq!(named(&["g"], |_, turns| turns[1].model = 0), "");
    // The text is compared if two targets return the same.
    let text = "the text of direct";
    assert_eq!(
        named(&["g", "h"], |_, turns| turns[2].content_digest += 1),
        text.to_owned() + ", the text of g"
    );
    assert_eq!(
        named(&["g", "h"], |n, turns| turns[2].content_digest += u32::from(n % 4 == 0)),
        text.to_owned() + ", the text of g"
    );
    assert_eq!(named(&["g"], |_, turns| turns[1].content_digest += 1), "");
    let vary = |n: u64, turns: &mut [PairedTurn]| {
        for (target, turn) in (0..).zip(turns) {
            turn.content_digest = u32::try_from(n).unwrap() * 10 + target;
        }
    };
    assert_eq!(named(&["g", "h"], vary), "");
    // A text that lacks a part is not reported twice.
    assert_eq!(
        named(&["g", "h"], |_, turns| {
            (turns[2].content_digest, turns[2].content_bytes) = (1, 20);
        }),
        "content bytes, content bytes"
    );
}

/// A target that is asked for another model answers with it.
#[test]
fn a_model_that_was_asked_for_is_no_other_answer() {
    let simulation = simulation(0);
    let mut facts = simulation.facts();
    let mut blocks = simulation.blocks();
    for block in &mut blocks {
        for (model, turn) in (1..).zip(block.turns.iter_mut().flatten()) {
            turn.model = model;
        }
    }
    facts.targets[0].model = "openai/m".to_owned();
    facts.targets[1].model = "m".to_owned();
    assert_eq!(about(&judge(&facts, &blocks)), "the same `model` as direct");
    facts.targets[1].model = "big".to_owned();
    assert_eq!(about(&judge(&facts, &blocks)), "");
}
