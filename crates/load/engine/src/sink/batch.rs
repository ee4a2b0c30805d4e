//! Samples on their way to the writer.

use plimsoll_measure::{Moment, Sample};

use super::sampling::SamplingRate;

/// Samples of a stretch of the run.
#[derive(Debug, Default)]
pub struct SampleBatch {
    /// The samples, in the order in which their turns ended.
    pub samples: Vec<Sample>,
    /// Arrival times of the content events of some of them, by index in `samples`, ascending.
    pub events: Vec<(usize, Vec<Moment>)>,
    /// The sampling rate that applied while the samples were collected.
    pub sampling_rate: SamplingRate,
}

impl SampleBatch {
    /// Every sample, with the arrival times of its content events where its row shall have them.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, Option<&[Moment]>)> {
        let mut events = self.events.iter().peekable();
        self.samples.iter().enumerate().map(move |(index, sample)| {
            let times = events.next_if(|(of, _)| *of == index);
            (sample, times.map(|(_, times)| times.as_slice()))
        })
    }
}
