//! Enums whose values have a name.

/// Defines an enum with `ALL`, its values in the order of declaration, and `name`, the value's name
/// in files and reports.
#[macro_export]
macro_rules! named_enum {
    ($(#[$attribute:meta])* $vis:vis enum $type:ident {
        $($(#[$of_variant:meta])* $variant:ident => $name:literal,)+
    }) => {
        $(#[$attribute])*
        $vis enum $type {
            $($(#[$of_variant])* $variant,)+
        }

        impl $type {
            /// Every value, in the order of declaration.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in files and reports.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}
