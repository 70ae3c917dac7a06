"""Which customers matter most? A view in Python; its promise is in its table properties."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.active()


@dp.materialized_view(
    comment="Customers by what they spent: the top tenth, the next three tenths, and the rest",
    table_properties={"springhouse.staleness": "30 seconds", "springhouse.priority": "2"},
)
def customer_segments() -> DataFrame:
    spent = (
        spark.read.table("order_totals")
        .groupBy("customer_id")
        .agg(sf.sum("billed").alias("spent"), sf.count("*").alias("orders"))
    )
    known = spent.join(spark.read.table("customers"), "customer_id")
    by_spending = sf.expr("percent_rank() OVER (ORDER BY spent DESC, customer_id)")
    ranked = known.withColumn("rank", by_spending)
    segment = sf.expr("CASE WHEN rank < 0.1 THEN 'top' WHEN rank < 0.4 THEN 'good' ELSE 'rest' END")
    return (
        ranked.withColumn("segment", segment)
        .groupBy("segment", "tier")
        .agg(
            sf.count("*").alias("customers"),
            sf.sum("orders").alias("orders"),
            sf.sum("spent").alias("spent"),
        )
    )
