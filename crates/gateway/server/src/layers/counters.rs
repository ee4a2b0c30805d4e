//! Counters of the layers: each is defined in its layer's file and registered through the table of
//! layers.

use std::ptr;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::layers;

/// A counter that a layer adds to the metrics. The values of its labels come from closed sets.
#[derive(Debug)]
pub(crate) struct LayerCounter {
    /// Without the common prefix, and without `_total`.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) labels: &'static [&'static str],
    /// Label values that exist from the start, with 0.
    pub(crate) known: &'static [&'static [&'static str]],
}

type Labels = Vec<(&'static str, String)>;

/// The counters of all layers, whether or not they are enabled.
#[derive(Debug)]
pub(crate) struct LayerCounters(Vec<(&'static LayerCounter, Family<Labels, Counter>)>);

impl LayerCounters {
    /// Registers the counters of the table, in its order.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let counters = layers::counters().into_iter().map(|counter: &'static LayerCounter| {
            let family = Family::default();
            registry.register(counter.name, counter.help, family.clone());
            for values in counter.known {
                drop(family.get_or_create(&labels(counter, values)));
            }
            (counter, family)
        });
        Self(counters.collect())
    }

    /// Counts one event. The values are the counter's labels, in order.
    pub(crate) fn count(&self, counter: &'static LayerCounter, values: &[&str]) {
        if let Some((_, family)) = self.0.iter().find(|(known, _)| ptr::eq(*known, counter)) {
            family.get_or_create(&labels(counter, values)).inc();
        }
    }
}

fn labels(counter: &LayerCounter, values: &[&str]) -> Labels {
    counter.labels.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect()
}
