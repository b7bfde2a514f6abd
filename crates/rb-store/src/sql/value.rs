//! Column values of both backends, and the fields of row types as columns.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;

use crate::numeric::{amount, count_from_db, count_to_db};
use crate::{RunKey, Tokens};

/// Value of a column or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// Returns a text parameter that outlives the caller's reference.
    pub(crate) fn text(text: &str) -> Value<'static> {
        Value::Text(Cow::Owned(text.to_owned()))
    }
}

/// Conversion failure of a stored or new value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("column {column}: expected {expected}")]
    Type { column: usize, expected: &'static str },
    #[error("column {column}: {cause}")]
    Database { column: usize, cause: String },
    #[error("invalid stored JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("this backend does not implement the change")]
    NotPlain,
}

pub(crate) type Converted<T> = Result<T, ValueError>;

/// Columns of a result row, read in order. Lookups by name would cost a search per column.
pub(crate) trait Columns {
    /// Number of columns read so far.
    fn position(&self) -> usize;
    fn next(&mut self) -> Converted<Value<'_>>;
}

/// Field of a row type. Occupies one or more columns.
pub(crate) trait Field: Sized {
    /// PostgreSQL types of the columns.
    const TYPES: &'static [&'static str];
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()>;
    fn read(columns: &mut dyn Columns) -> Converted<Self>;
}

/// Reads the next field.
pub(crate) fn next<T: Field>(columns: &mut dyn Columns) -> Converted<T> {
    T::read(columns)
}

/// Implements [`Field`] for a type and its `Option`, each in one column.
macro_rules! scalar {
    ($kind:ty, $ty:literal, |$own:ident| $write:expr, $($stored:pat => $read:expr),+) => {
        impl Field for $kind {
            const TYPES: &'static [&'static str] = &[$ty];

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
                let $own = self;
                values.push($write);
                Ok(())
            }

            fn read(columns: &mut dyn Columns) -> Converted<Self> {
                let column = columns.position();
                Option::<$kind>::read(columns)?.ok_or(ValueError::Type { column, expected: $ty })
            }
        }

        impl Field for Option<$kind> {
            const TYPES: &'static [&'static str] = &[$ty];

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
                match self {
                    Some(own) => own.write(values),
                    None => {
                        values.push(Value::Null);
                        Ok(())
                    }
                }
            }

            fn read(columns: &mut dyn Columns) -> Converted<Self> {
                let column = columns.position();
                match columns.next()? {
                    Value::Null => Ok(None),
                    $($stored => Ok(Some($read)),)+
                    _ => Err(ValueError::Type { column, expected: $ty }),
                }
            }
        }
    };
}

scalar!(String, "text", |own| Value::Text(Cow::Borrowed(own)), Value::Text(text) => text.into_owned());
scalar!(i64, "bigint", |own| Value::Int(*own), Value::Int(number) => number);
scalar!(u64, "bigint", |own| Value::Int(count_to_db(*own)), Value::Int(number) => count_from_db(number));
scalar!(u32, "bigint", |own| Value::Int(i64::from(*own)),
    Value::Int(number) => u32::try_from(number).unwrap_or(u32::MAX));
scalar!(bool, "bool", |own| Value::Bool(*own), Value::Bool(flag) => flag, Value::Int(number) => number != 0);
scalar!(f64, "float8", |own| Value::Real(amount(*own)), Value::Real(number) => number);

impl<const N: usize> Field for [i64; N] {
    const TYPES: &'static [&'static str] = &["bigint"; N];

    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
        values.extend(self.map(Value::Int));
        Ok(())
    }

    fn read(columns: &mut dyn Columns) -> Converted<Self> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = next(columns)?;
        }
        Ok(numbers)
    }
}

/// Implements [`Field`] for a struct whose fields are columns.
macro_rules! composite {
    ($kind:ty, $count:literal x $ty:literal { $($field:ident),+ }) => {
        impl Field for $kind {
            const TYPES: &'static [&'static str] = &[$ty; $count];

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
                $(self.$field.write(values)?;)+
                Ok(())
            }

            fn read(columns: &mut dyn Columns) -> Converted<Self> {
                Ok(Self { $($field: next(columns)?),+ })
            }
        }
    };
}

composite!(RunKey, 2 x "text" { org, run_id });
composite!(Tokens, 5 x "bigint" { total, input, output, cache_read, cache_write });

/// Serialises a list or map; NULL if it is empty.
pub(crate) fn to_json(value: &impl Serialize, is_empty: bool) -> Converted<Value<'static>> {
    Ok(if is_empty { Value::Null } else { Value::Text(serde_json::to_string(value)?.into()) })
}

/// Implements [`Field`] for lists and maps, which are stored as JSON.
macro_rules! json {
    ($kind:ty $(, $parameter:ident: $bound:path)*) => {
        impl<$($parameter: Serialize + DeserializeOwned + $bound),*> Field for $kind {
            const TYPES: &'static [&'static str] = &["text"];

            fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) -> Converted<()> {
                values.push(to_json(self, self.is_empty())?);
                Ok(())
            }

            fn read(columns: &mut dyn Columns) -> Converted<Self> {
                let column = columns.position();
                match columns.next()? {
                    Value::Null => Ok(Self::default()),
                    Value::Text(text) => Ok(serde_json::from_str(&text)?),
                    Value::Bool(_) | Value::Int(_) | Value::Real(_) => {
                        Err(ValueError::Type { column, expected: "JSON" })
                    }
                }
            }
        }
    };
}

json!(Vec<T>, T: Sized);
json!(BTreeMap<K, V>, K: Ord, V: Sized);
json!(Map<String, serde_json::Value>);
