//! Integration tests of the policy: the corpus, actions, the scrubbers.

mod corpus;
mod policy;
mod scrubber;
