//! Prompt texts as a struct: the compiler reports a missing name and an unused text. Read from data,
//! missing texts are empty.

/// Defines the struct of a product's prompt texts, each with our text as the default.
macro_rules! words {
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $name:ident { $($field:ident = $text:expr;)+ }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $vis struct $name { $(#[serde(default)] $vis $field: std::sync::Arc<str>,)+ }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $text.into(),)+ }
            }
        }
    };
}

pub(crate) use words;
