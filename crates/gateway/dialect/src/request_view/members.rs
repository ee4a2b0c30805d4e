//! The inspected members of a request, as JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::TokenLimits;
use crate::wire::CowStr;

/// Makes the struct and its parser.
macro_rules! members {
    ($($name:ident,)*) => {
        /// The members of all endpoints, unparsed, at most one of each name.
        #[derive(Debug)]
        pub(super) struct RawMembers<'a> {
            $(pub(super) $name: Option<&'a RawValue>,)*
            /// The output limits in members of other spellings and names.
            pub(super) limits: TokenLimits,
        }

        impl<'de> Visitor<'de> for Members {
            type Value = RawMembers<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                $(let mut $name: Option<Option<&'de RawValue>> = None;)*
                let mut limits = TokenLimits::default();
                while let Some(name) = map.next_key::<CowStr<'de>>()? {
                    match &*name {
                        $(stringify!($name) => {
                            if $name.is_some() {
                                return Err(A::Error::duplicate_field(stringify!($name)));
                            }
                            $name = Some(map.next_value()?);
                        })*
                        name => limits.read(name, &mut map)?,
                    }
                }
                Ok(RawMembers { $($name: $name.flatten(),)* limits })
            }
        }
    };
}

members! {
    model,
    stream,
    stream_options,
    max_tokens,
    max_completion_tokens,
    max_output_tokens,
    n,
    system,
    instructions,
    messages,
    input,
}

/// An array of the values is not a request.
struct Members;

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}
