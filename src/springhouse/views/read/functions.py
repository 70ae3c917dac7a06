"""Does a function aggregate rows, multiply rows, or give random values?"""

from sqlglot import exp

from springhouse.views.read.not_compilable import NotCompilable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Spark's aggregates that sqlglot has no class for.
_AGGREGATES = _words(
    """any bit_and bit_or bit_xor bitmap_construct_agg bitmap_or_agg collect_set count_min_sketch
    every first_value histogram_numeric hll_sketch_agg hll_union_agg last_value listagg mean median
    mode percentile percentile_approx regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy schema_of_json_agg some std string_agg try_avg try_sum
    """
)
_CHANGING = _words(
    """current_database current_user input_file_block_length input_file_block_start input_file_name
    localtimestamp monotonically_increasing_id now rand randn random randstr session_user shuffle
    spark_partition_id uniform user uuid"""
)
_CHANGING_CLASSES = (
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentDatetime,
    exp.CurrentUser,
    exp.Localtimestamp,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
_AROUND_AGGREGATES = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_ZERO_OF_NOTHING = (exp.Count, exp.CountIf, exp.ApproxDistinct)
_NULL_OF_NOTHING = (
    *(exp.Sum, exp.Avg, exp.Min, exp.Max, exp.ArgMin, exp.ArgMax, exp.Median, exp.Corr),
    *(exp.LogicalAnd, exp.LogicalOr, exp.Any, exp.AnyValue, exp.First, exp.Last),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
)
_GENERATORS = (
    exp.Explode,
    exp.ExplodeOuter,
    exp.Posexplode,
    exp.PosexplodeOuter,
    exp.Inline,
    exp.Stack,
)
_GENERATOR_NAMES = frozenset({"inline_outer", "json_tuple"})


def validate_deterministic(query: exp.Expr) -> None:
    """Refuse functions whose value does not depend on the rows alone, such as `rand()`."""
    for each in query.walk():
        name = each.sql_name().lower() if isinstance(each, exp.Func) else ""
        name = each.name.lower() if isinstance(each, exp.Anonymous) else name
        if isinstance(each, _CHANGING_CLASSES) or name in _CHANGING:
            what = name or each.sql(dialect="spark").lower()
            raise NotCompilable(f"`{what.removesuffix('()')}` gives another value each time", each)
        if isinstance(each, exp.TableSample):
            raise NotCompilable("TABLESAMPLE gives other rows each time", each)


def is_aggregate(expression: exp.Expr) -> bool:
    """Whether the whole expression is one aggregate: one value for the rows of a group.

    >>> from sqlglot import parse_one
    >>> [is_aggregate(parse_one(t, read="spark")) for t in ("sum(a)", "every(a)", "sum(a) + 1")]
    [True, True, False]
    """
    if isinstance(expression, _AROUND_AGGREGATES):
        return is_aggregate(expression.this)
    if isinstance(expression, exp.Anonymous):
        return expression.name.lower() in _AGGREGATES
    if isinstance(expression, exp.Any):
        # `any(a)` is an aggregate; `w LIKE ANY ('a%', 'b%')` is not.
        return not isinstance(expression.parent, exp.Like | exp.ILike)
    return isinstance(expression, exp.AggFunc)


def aggregates(value: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates in an expression that are not window functions."""
    if isinstance(value, exp.Window):
        # `sum(sum(x)) OVER (…)`: the inner sum is an aggregate, the outer one a window function.
        function = value.this
        while isinstance(function, _AROUND_AGGREGATES):
            function = function.this
        parts = [*function.iter_expressions(), *(value.args.get("partition_by") or ())]
        parts += [value.args["order"]] if value.args.get("order") is not None else []
    elif is_aggregate(value):
        return [value]
    else:
        parts = list(value.iter_expressions())
    return [each for part in parts for each in aggregates(part)]


def validate_flat(aggregate: exp.Expr) -> None:
    """Refuse an aggregate with another aggregate or a window function in its arguments."""
    function = aggregate
    while isinstance(function, _AROUND_AGGREGATES):
        if isinstance(function, exp.Filter):
            validate_plain(function.expression, "an aggregate", aggregate)
        function = function.this
    for each in function.iter_expressions():
        validate_plain(each, "an aggregate", aggregate)


def of_nothing(aggregate: exp.Expr) -> exp.Expr:
    """The value of an aggregate over no rows.

    >>> from sqlglot import parse_one
    >>> [of_nothing(parse_one(text)).sql() for text in ("count(*)", "max(a)")]
    ['0', 'NULL']
    """
    function = aggregate
    while isinstance(function, _AROUND_AGGREGATES):
        function = function.this
    if isinstance(function, _ZERO_OF_NOTHING):
        return exp.Literal.number(0)
    if isinstance(function, _NULL_OF_NOTHING):
        return exp.Null()
    raise NotCompilable(
        f"`{function.sql(dialect='spark')}` of no rows is not understood", aggregate
    )


def validate_plain(value: exp.Expr, clause: str, at: exp.Expr | None = None) -> None:
    """Refuse aggregates, window functions and generators in a clause that acts on single rows."""
    for each in value.walk():
        if isinstance(each, exp.Window):
            raise NotCompilable(f"a window function in {clause}", at or each)
        if is_aggregate(each):
            raise NotCompilable(f"an aggregate in {clause}", at or each)
        if is_generator(each):
            raise NotCompilable(f"a generator in {clause}", at or each)


def is_generator(expression: exp.Expr) -> bool:
    """Whether the expression makes several rows of one row."""
    if isinstance(expression, exp.Anonymous):
        return expression.name.lower() in _GENERATOR_NAMES
    return isinstance(expression, _GENERATORS)
