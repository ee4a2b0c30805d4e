//! Finds the targets of a comparison that fail, so that they are taken out of it.

/// Seconds in a row in which at least half of the requests failed.
const FAILING_SECONDS: u32 = 10;
/// Requests that must have failed by then.
const ENOUGH: u64 = 10;

/// How long each target has been failing.
#[derive(Debug)]
pub(crate) struct TargetWatch(Vec<Failing>);

#[derive(Clone, Copy, Debug, Default)]
struct Failing {
    /// Seconds with an end of a request, since the last one in which fewer than half failed.
    seconds: u32,
    failed: u64,
}

impl TargetWatch {
    /// No target has failed yet.
    pub(crate) fn new(targets: usize) -> Self {
        Self(vec![Failing::default(); targets])
    }

    /// Counts the requests to a target that ended in a second, and those of them that got no good
    /// answer. Gives whether it is to be taken out. Seconds without an end count for nothing:
    /// targets may take turns.
    pub(crate) fn is_failing(&mut self, target: usize, ended: u64, failed: u64) -> bool {
        let Some(failing) = self.0.get_mut(target) else { return false };
        if ended == 0 {
            return false;
        }
        if 2 * failed < ended {
            *failing = Failing::default();
            return false;
        }
        failing.seconds += 1;
        failing.failed += failed;
        failing.seconds >= FAILING_SECONDS && failing.failed >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a target is taken out, counted from 1, if each second ends as given.
    fn taken_out_after(seconds: impl IntoIterator<Item = (u64, u64)>) -> Option<usize> {
        let mut watch = TargetWatch::new(1);
        let out = |(ended, failed)| watch.is_failing(0, ended, failed);
        seconds.into_iter().map(out).position(|out| out).map(|second| second + 1)
    }

    #[test]
    fn ten_seconds_in_which_half_of_the_requests_fail_end_the_part_of_a_target() {
        assert_eq!(taken_out_after([(100, 50); 12]), Some(10));
        assert_eq!(taken_out_after([(100, 49); 100]), None);
        assert_eq!(taken_out_after([(1, 1); 12]), Some(10));
        let with_a_good_one = (0..25).map(|second| if second == 8 { (9, 0) } else { (9, 9) });
        assert_eq!(taken_out_after(with_a_good_one), Some(19));
        let with_pauses = (0..30).map(|second| if second % 2 == 0 { (9, 9) } else { (0, 0) });
        assert_eq!(taken_out_after(with_pauses), Some(19));
        let few = (0..60).map(|second| if second % 4 == 0 { (2, 1) } else { (0, 0) });
        assert_eq!(taken_out_after(few), Some(37));
    }

    #[test]
    fn targets_are_watched_apart() {
        let mut watch = TargetWatch::new(2);
        for _ in 0..9 {
            assert!(!watch.is_failing(0, 5, 5) && !watch.is_failing(1, 5, 0));
        }
        assert!(watch.is_failing(0, 5, 5) && !watch.is_failing(1, 5, 5));
    }
}
