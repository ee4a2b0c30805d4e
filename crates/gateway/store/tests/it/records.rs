//! Sessions and approvals: the same stories for both stores.

use crate::support::block_on;
use plimsoll_gateway_store::{
    Approval, ApprovalRules, ApprovalState, Backend, Moment, NewApproval, NewSession, RecordError,
    RecordId, Session, SessionRules, Sizes, Store, Verdict,
};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

mod redis;
mod size;

const RULES: SessionRules = SessionRules { sessions: 1_000, metadata_bytes: 64, calls: 20 };
const APPROVALS: ApprovalRules =
    ApprovalRules { approvals: 1_000, bytes: 64, keep: Duration::from_hours(1) };
const LONG: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(1);

/// Racers for one approval.
const RACERS: usize = 64;

/// A store, and how time passes in it: in memory it is told, in Redis it passes by itself.
struct Bench {
    store: Store,
    at: Moment,
    waits: bool,
    ids: u128,
}

impl Bench {
    async fn memory() -> Self {
        Self::new(&Backend::memory(Sizes::default()), false).await
    }

    async fn new(backend: &Backend, waits: bool) -> Self {
        let at = Moment { now: 5_000_000_000, unix_ms: 1_700_000_000_000 };
        Self { store: backend.attach().await, at, waits, ids: 0xfeed }
    }

    fn id(&mut self) -> RecordId {
        self.ids += 1;
        RecordId(self.ids)
    }

    /// Lets what lives for [`SHORT`] expire.
    async fn let_short_ones_expire(&mut self) {
        self.at.now += 1_000_000;
        self.at.unix_ms += 1;
        if self.waits {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn session(
        &mut self,
        rules: &SessionRules,
        owner: &str,
        ttl: Duration,
    ) -> Result<RecordId, RecordError> {
        let id = self.id();
        let new = NewSession { id, owner, most: 1_000, ttl, metadata: b"{}" };
        self.store.create_session(self.at, rules, &new).await.map(|_| id)
    }

    async fn approval(
        &mut self,
        rules: &ApprovalRules,
        owner: &str,
        ttl: Duration,
    ) -> Result<RecordId, RecordError> {
        let id = self.id();
        let new = NewApproval { id, owner, action: "pay", details: b"{}", session: None, ttl };
        self.store.create_approval(self.at, rules, &new).await.map(|_| id)
    }

    async fn read(&self, owner: &str, id: RecordId) -> Result<Session, RecordError> {
        self.store.session(self.at.now, owner, id).await
    }

    async fn look(&self, owner: &str, id: RecordId) -> Result<Approval, RecordError> {
        self.store.approval(self.at.now, owner, id).await
    }

    async fn decide(
        &self,
        owner: &str,
        id: RecordId,
        verdict: Verdict,
    ) -> Result<Approval, RecordError> {
        self.store.decide(self.at, &APPROVALS, owner, id, verdict, "because").await
    }

    async fn pending(&self, owner: &str) -> Vec<RecordId> {
        let pending = self.store.pending_approvals(self.at.now, owner, 100).await.unwrap();
        assert_eq!(pending.total, pending.approvals.len());
        pending.approvals.iter().map(|approval| approval.id).collect()
    }
}

async fn sessions_live_and_end(mut bench: Bench) {
    let metadata = br#"{"plan":"b","n":1}"#;
    let (id, at) = (bench.id(), bench.at);
    let new = NewSession { id, owner: "acme", most: 1_000, ttl: Duration::from_secs(90), metadata };
    let made = bench.store.create_session(at, &RULES, &new).await.unwrap();
    let expected = Session {
        created_at: 1_700_000_000_000,
        expires_at: 1_700_000_090_000,
        calls: 0,
        metadata: metadata[..].into(),
    };
    assert_eq!(made, expected);
    assert_eq!(bench.read("acme", id).await.unwrap(), expected);

    // Not those of others, and not unknown ones.
    let gone = Err(RecordError::NotFound);
    assert_eq!(bench.read("acm", id).await, gone);
    assert_eq!(bench.read("", id).await, gone);
    assert_eq!(bench.read("acme", RecordId(1)).await, gone);
    let count = async |owner| bench.store.count_call(at.now, &RULES, owner, id).await;
    assert_eq!(count("other").await, Err(RecordError::NotFound));
    assert_eq!(bench.store.end_session(at.now, "other", id).await, Err(RecordError::NotFound));

    // Twenty calls, and no more.
    for call in 1..=20 {
        assert_eq!(count("acme").await, Ok(call));
    }
    assert_eq!(count("acme").await, Err(RecordError::CallLimit));
    assert_eq!(bench.read("acme", id).await.unwrap().calls, 20, "a refused call is not counted");

    assert_eq!(bench.store.end_session(at.now, "acme", id).await, Ok(()));
    assert_eq!(bench.read("acme", id).await, gone);
    assert_eq!(count("acme").await, Err(RecordError::NotFound));
    assert_eq!(bench.store.end_session(at.now, "acme", id).await, Err(RecordError::NotFound));
}

async fn sessions_expire_and_make_room(mut bench: Bench) {
    let rules = SessionRules { sessions: 3, ..RULES };
    let first = bench.session(&rules, "acme", LONG).await.unwrap();
    let short = bench.session(&rules, "acme", SHORT).await.unwrap();
    bench.let_short_ones_expire().await;
    assert_eq!(bench.read("acme", short).await, Err(RecordError::NotFound));
    let expired = bench.store.count_call(bench.at.now, &rules, "acme", short).await;
    assert_eq!(expired, Err(RecordError::NotFound));
    // The third and the fourth take the places that are left: one is the expired one's.
    let second = bench.session(&rules, "acme", LONG).await.unwrap();
    let third = bench.session(&rules, "other", LONG).await.unwrap();
    for _ in 0..3 {
        assert_eq!(bench.session(&rules, "acme", LONG).await, Err(RecordError::Full));
    }
    for (owner, id) in [("acme", first), ("acme", second), ("other", third)] {
        assert!(bench.read(owner, id).await.is_ok(), "live ones are never driven out");
    }
    bench.store.end_session(bench.at.now, "other", third).await.unwrap();
    // An owner that has its share leaves the place to others.
    for (owner, most, made) in [("acme", 2, false), ("acme", 3, true)] {
        let new = NewSession { id: bench.id(), owner, most, ttl: LONG, metadata: b"" };
        let found = bench.store.create_session(bench.at, &rules, &new).await;
        assert_eq!(found.is_ok(), made, "{owner} with {most}: {found:?}");
    }
    assert_eq!(bench.session(&rules, "acme", LONG).await, Err(RecordError::Full));
}

async fn what_is_too_large_is_refused(mut bench: Bench) {
    let id = bench.id();
    for (bytes, fits) in [(0, true), (64, true), (65, false), (1 << 20, false)] {
        let metadata = vec![b'x'; bytes];
        let new = NewSession { id, owner: "acme", most: 1_000, ttl: LONG, metadata: &metadata };
        let made = bench.store.create_session(bench.at, &RULES, &new).await;
        assert_eq!(made.is_ok(), fits, "{bytes}");
        let details = vec![b'x'; bytes.saturating_sub(3)];
        let (action, session) = ("pay", Some(id));
        let new = NewApproval { id, owner: "acme", action, details: &details, session, ttl: LONG };
        let made = bench.store.create_approval(bench.at, &APPROVALS, &new).await;
        match made {
            Ok(_) => assert!(fits, "{bytes}"),
            Err(error) => assert_eq!(error, RecordError::TooLarge { bytes, max: 64 }),
        }
    }
}

async fn approvals_are_decided_once(mut bench: Bench) {
    let (id, session, at) = (bench.id(), bench.id(), bench.at);
    let (action, details) = ("pay \u{20ac} 5", br#"{"to":"x"}"#);
    let (session, ttl) = (Some(session), Duration::from_secs(30));
    let new = NewApproval { id, owner: "acme", action, details, session, ttl };
    let made = bench.store.create_approval(at, &APPROVALS, &new).await.unwrap();
    let mut expected = Approval {
        id,
        action: "pay \u{20ac} 5".into(),
        details: details[..].into(),
        session,
        created_at: 1_700_000_000_000,
        expires_at: 1_700_000_030_000,
        state: ApprovalState::Pending,
        decided_at: None,
        reason: "".into(),
    };
    assert_eq!(made, expected);
    assert_eq!(bench.look("acme", id).await.unwrap(), expected);
    assert_eq!(bench.pending("acme").await, [id]);

    assert_eq!(bench.look("other", id).await, Err(RecordError::NotFound));
    assert_eq!(bench.pending("other").await, []);
    let foreign = bench.decide("other", id, Verdict::Approve).await;
    assert_eq!(foreign, Err(RecordError::NotFound));

    let decided = bench.decide("acme", id, Verdict::Reject).await.unwrap();
    assert!(decided.decided_at.is_some());
    expected.state = ApprovalState::Rejected;
    (expected.decided_at, expected.reason) = (decided.decided_at, "because".into());
    assert_eq!(decided, expected);
    assert_eq!(bench.look("acme", id).await.unwrap(), expected);
    assert_eq!(bench.pending("acme").await, []);
    for verdict in [Verdict::Approve, Verdict::Reject, Verdict::Expire] {
        let late = bench.decide("acme", id, verdict).await;
        assert_eq!(late, Err(RecordError::AlreadyDecided(ApprovalState::Rejected)));
    }
    assert_eq!(bench.look("acme", id).await.unwrap(), expected);
}

async fn time_is_an_outcome(mut bench: Bench) {
    let short = bench.approval(&APPROVALS, "acme", SHORT).await.unwrap();
    let long = bench.approval(&APPROVALS, "acme", LONG).await.unwrap();
    bench.let_short_ones_expire().await;
    assert_eq!(bench.pending("acme").await, [long]);
    for verdict in [Verdict::Approve, Verdict::Reject, Verdict::Expire] {
        let late = bench.decide("acme", short, verdict).await;
        assert_eq!(late, Err(RecordError::AlreadyDecided(ApprovalState::Expired)));
    }
    let expired = bench.look("acme", short).await.unwrap();
    assert_eq!(expired.state, ApprovalState::Expired);
    assert_eq!(expired.decided_at, Some(expired.expires_at));
    let said = bench.decide("acme", long, Verdict::Expire).await.unwrap();
    assert_eq!((said.state, bench.pending("acme").await), (ApprovalState::Expired, vec![]));
}

async fn decided_ones_make_room_and_pending_ones_do_not(mut bench: Bench) {
    let rules = ApprovalRules { approvals: 3, ..APPROVALS };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bench.approval(&rules, "acme", LONG).await.unwrap());
    }
    assert_eq!(bench.approval(&rules, "acme", LONG).await, Err(RecordError::Full));
    assert_eq!(bench.pending("acme").await.len(), 3);
    bench.decide("acme", ids[1], Verdict::Approve).await.unwrap();
    let fourth = bench.approval(&rules, "other", LONG).await.unwrap();
    assert_eq!(bench.look("acme", ids[1]).await, Err(RecordError::NotFound), "it gave way");
    assert_eq!(bench.approval(&rules, "acme", LONG).await, Err(RecordError::Full));
    // One whose time is over is decided, too.
    bench.decide("other", fourth, Verdict::Reject).await.unwrap();
    let short = bench.approval(&rules, "acme", SHORT).await.unwrap();
    bench.let_short_ones_expire().await;
    let last = bench.approval(&rules, "acme", LONG).await.unwrap();
    assert_eq!(bench.look("acme", short).await, Err(RecordError::NotFound));
    let mut pending = bench.pending("acme").await;
    pending.sort();
    assert_eq!(pending, [ids[0], ids[2], last]);
}

async fn outcomes_are_kept_for_their_time(mut bench: Bench) {
    let rules = ApprovalRules { keep: SHORT, ..APPROVALS };
    let pending = bench.approval(&rules, "acme", LONG).await.unwrap();
    let decided = bench.approval(&rules, "acme", LONG).await.unwrap();
    let expired = bench.approval(&rules, "acme", SHORT).await.unwrap();
    let verdict = Verdict::Approve;
    bench.store.decide(bench.at, &rules, "acme", decided, verdict, "").await.unwrap();
    bench.let_short_ones_expire().await;
    assert_eq!(bench.look("acme", decided).await, Err(RecordError::NotFound));
    // An outcome by time is kept as long, from the time at which it expired.
    bench.let_short_ones_expire().await;
    assert_eq!(bench.look("acme", expired).await, Err(RecordError::NotFound));
    for id in [decided, expired] {
        let late = bench.store.decide(bench.at, &rules, "acme", id, verdict, "").await;
        assert_eq!(late, Err(RecordError::NotFound), "nobody is told what is no longer kept");
    }
    assert_eq!(bench.look("acme", pending).await.unwrap().state, ApprovalState::Pending);
    assert_eq!(bench.pending("acme").await, [pending]);
    bench.store.decide(bench.at, &rules, "acme", pending, verdict, "").await.unwrap();
}

async fn lists_are_bounded(mut bench: Bench) {
    let mut ids = Vec::new();
    for seconds in [50, 10, 40, 20, 30] {
        let ttl = Duration::from_secs(seconds * 100);
        ids.push((seconds, bench.approval(&APPROVALS, "acme", ttl).await.unwrap()));
    }
    ids.sort();
    let first: Vec<RecordId> = ids.iter().map(|(_, id)| *id).take(3).collect();
    let listed = bench.store.pending_approvals(bench.at.now, "acme", 3).await.unwrap();
    let found: Vec<RecordId> = listed.approvals.iter().map(|approval| approval.id).collect();
    assert_eq!((found, listed.total), (first, 5), "those that expire first");
    let none = bench.store.pending_approvals(bench.at.now, "acme", 0).await.unwrap();
    assert_eq!((none.approvals.len(), none.total), (0, 5));
}

/// 64 racers for each of many approvals, all at once. One of them succeeds, all others are told
/// its outcome, and that is what is kept.
fn race_for_approvals(backend: &Backend, rounds: u64) {
    let race = Arc::new(Race {
        start: Barrier::new(RACERS),
        end: Barrier::new(RACERS),
        winners: AtomicU64::new(0),
        told: Mutex::default(),
        failures: Mutex::default(),
    });
    let racers: Vec<_> = (0..RACERS)
        .map(|number| {
            let (backend, race) = (backend.clone(), Arc::clone(&race));
            thread::spawn(move || block_on(race.run(&backend, number, rounds)))
        })
        .collect();
    for racer in racers {
        racer.join().unwrap();
    }
    assert_eq!(*race.failures.lock().unwrap(), Vec::<String>::new());
}

/// State shared by the racers. Failures are collected, because the others would wait for a racer
/// that panics.
struct Race {
    start: Barrier,
    end: Barrier,
    /// Of this round.
    winners: AtomicU64,
    /// The outcomes that the racers of this round were told.
    told: Mutex<Vec<ApprovalState>>,
    failures: Mutex<Vec<String>>,
}

impl Race {
    fn expect(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.failures.lock().unwrap().push(what());
        }
    }

    async fn run(&self, backend: &Backend, number: usize, rounds: u64) {
        let store = backend.attach().await;
        let rules = ApprovalRules { approvals: 100_000, ..APPROVALS };
        let at = Moment { now: 1, unix_ms: 1 };
        for round in 0..rounds {
            let id = RecordId(u128::from(round) << 64 | 7);
            if number == 0 {
                let (owner, action, ttl) = ("acme", "race", LONG);
                let new = NewApproval { id, owner, action, details: b"", session: None, ttl };
                let made = store.create_approval(at, &rules, &new).await;
                self.expect(made.is_ok(), || format!("round {round}: {made:?}"));
                self.winners.store(0, SeqCst);
            }
            self.start.wait();
            let verdicts = [Verdict::Approve, Verdict::Reject, Verdict::Expire];
            let verdict = verdicts[(number + usize::try_from(round).unwrap()) % 3];
            let result = store.decide(at, &rules, "acme", id, verdict, "").await;
            let told = match &result {
                Ok(approval) => {
                    self.winners.fetch_add(1, SeqCst);
                    self.expect(approval.state == verdict.state(), || format!("{approval:?}"));
                    Some(approval.state)
                }
                Err(RecordError::AlreadyDecided(state)) => Some(*state),
                Err(_) => None,
            };
            self.expect(told.is_some(), || format!("round {round}: {result:?}"));
            self.told.lock().unwrap().extend(told);
            self.end.wait();
            if number == 0 {
                let winners = self.winners.load(SeqCst);
                self.expect(winners == 1, || format!("round {round}: {winners} winners"));
                let told = std::mem::take(&mut *self.told.lock().unwrap());
                let kept = store.approval(1, "acme", id).await.map(|approval| approval.state);
                let agree = told.iter().all(|told| kept == Ok(*told)) && told.len() == RACERS;
                self.expect(agree, || format!("round {round}: {kept:?} and {told:?}"));
            }
        }
    }
}

/// 64 racers count calls of one session: as many are counted as the rules allow.
fn race_for_calls(backend: &Backend) {
    let at = Moment { now: 1, unix_ms: 1 };
    let rules = SessionRules { calls: 500, ..RULES };
    let id = RecordId(99);
    block_on(async {
        let new = NewSession { id, owner: "acme", most: 1_000, ttl: LONG, metadata: b"" };
        backend.attach().await.create_session(at, &rules, &new).await.unwrap();
    });
    let racers: Vec<_> = (0..RACERS)
        .map(|_| {
            let backend = backend.clone();
            let racer = async move {
                let (store, mut counted) = (backend.attach().await, Vec::new());
                for _ in 0..10 {
                    match store.count_call(1, &rules, "acme", id).await {
                        Ok(call) => counted.push(call),
                        Err(error) => assert_eq!(error, RecordError::CallLimit),
                    }
                }
                counted
            };
            thread::spawn(move || block_on(racer))
        })
        .collect();
    let mut counted: Vec<u32> =
        racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect();
    counted.sort_unstable();
    assert_eq!(counted, (1..=500).collect::<Vec<_>>(), "each number once");
}

macro_rules! stories {
    ($($story:ident),* $(,)?) => {
        mod memory {
            $(#[test]
            fn $story() {
                super::block_on(async { super::$story(super::Bench::memory().await).await });
            })*
        }

        /// All stories, each with its own prefix in one Redis.
        fn in_redis(backend: impl Fn(&str) -> Backend) {
            $({
                let backend = backend(stringify!($story));
                block_on(async { $story(Bench::new(&backend, true).await).await });
                assert_eq!(backend.errors(), 0, stringify!($story));
            })*
        }
    };
}

stories! {
    sessions_live_and_end,
    sessions_expire_and_make_room,
    what_is_too_large_is_refused,
    approvals_are_decided_once,
    time_is_an_outcome,
    decided_ones_make_room_and_pending_ones_do_not,
    outcomes_are_kept_for_their_time,
    lists_are_bounded,
}

#[test]
fn sixty_four_racers_get_one_outcome() {
    race_for_approvals(&Backend::memory(Sizes::default()), 200);
}

#[test]
#[ignore = "takes longer: `scripts/test --all` runs it"]
fn sixty_four_racers_get_one_outcome_ten_thousand_times() {
    race_for_approvals(&Backend::memory(Sizes::default()), 10_000);
}

#[test]
fn sixty_four_racers_make_no_more_calls_than_allowed() {
    race_for_calls(&Backend::memory(Sizes::default()));
}

#[test]
fn room_is_given_to_one_racer_only() {
    let backend = Backend::memory(Sizes::default());
    let rules = SessionRules { sessions: 100, ..RULES };
    let racers: Vec<_> = (0..RACERS as u128)
        .map(|number| {
            let backend = backend.clone();
            let racer = async move {
                let (store, at) = (backend.attach().await, Moment { now: 1, unix_ms: 1 });
                let mut made = 0;
                for step in 0..20_u128 {
                    let id = RecordId(number * 1_000 + step);
                    let new =
                        NewSession { id, owner: "acme", most: 1_000, ttl: LONG, metadata: b"" };
                    made += u32::from(store.create_session(at, &rules, &new).await.is_ok());
                }
                made
            };
            thread::spawn(move || block_on(racer))
        })
        .collect();
    let made: u32 = racers.into_iter().map(|racer| racer.join().unwrap()).sum();
    assert_eq!(made, 100);
}
