//! The command-line flags that override a profile.

use std::fmt;

/// Overrides from the command line, each as it was typed.
#[derive(Clone, Default)]
pub struct Overrides {
    /// `--target URL`.
    pub target: Option<String>,
    /// `--direct URL` and `--target NAME=URL` of `plimsoll versus`: the list `targets` in JSON.
    pub targets: Option<String>,
    /// `--key KEY`.
    pub key: Option<String>,
    /// `--model NAME`.
    pub model: Option<String>,
    /// `--protocol NAME`: for every scenario, whatever the profile has.
    pub protocol: Option<String>,
    /// `--stages STAGES`.
    pub stages: Option<String>,
    /// `--max-requests N`.
    pub max_requests: Option<String>,
    /// `--abort-on-errors SHARE`, as a number from 0 to 1.
    pub abort_on_error_rate: Option<String>,
    /// `--seed N`.
    pub seed: Option<String>,
    /// `--ca-file FILE`.
    pub ca_file: Option<String>,
    /// `--cert FILE`.
    pub cert_file: Option<String>,
    /// `--cert-key FILE`.
    pub key_file: Option<String>,
    /// `--insecure`.
    pub insecure: bool,
    /// `--no-resumption`.
    pub no_resumption: bool,
    /// `--header 'NAME: VALUE'`, added to those of the profile, or replacing one of the same name.
    pub headers: Vec<String>,
    /// `--set PATH=VALUE`, for every key: `--set scenarios.simple.weight=3`.
    pub sets: Vec<String>,
    /// `--run-id ID`: the id of the run, from which the ids of its requests follow. Left out: a
    /// random one.
    pub run_id: Option<String>,
    /// `--shard K/N`: the part of the run that this process runs, from 0.
    pub shard: Option<String>,
}

impl Overrides {
    /// The flags that override one key: the flag, the key's path and the text.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let insecure = self.insecure.then_some("true");
        let resumption = self.no_resumption.then_some("false");
        [
            ("--target", "target", self.target.as_deref()),
            ("--target", "targets", self.targets.as_deref()),
            ("--key", "key", self.key.as_deref()),
            ("--model", "model", self.model.as_deref()),
            ("--protocol", "protocol", self.protocol.as_deref()),
            ("--stages", "stages", self.stages.as_deref()),
            ("--max-requests", "max_requests", self.max_requests.as_deref()),
            ("--abort-on-errors", "abort_on_error_rate", self.abort_on_error_rate.as_deref()),
            ("--seed", "seed", self.seed.as_deref()),
            ("--ca-file", "tls.ca_file", self.ca_file.as_deref()),
            ("--cert", "tls.cert_file", self.cert_file.as_deref()),
            ("--cert-key", "tls.key_file", self.key_file.as_deref()),
            ("--insecure", "tls.insecure", insecure),
            ("--no-resumption", "tls.resumption", resumption),
        ]
        .into_iter()
        .filter_map(|(flag, path, text)| Some((flag, path, text?)))
    }
}

/// Shows nothing: keys and headers are secrets.
impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides").finish_non_exhaustive()
    }
}
