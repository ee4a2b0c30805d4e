//! Integration tests of the policy: the corpus, actions, the scrubbers.

mod corpus;
mod examples;
mod policy;
mod scrubber;
