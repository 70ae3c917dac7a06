-- The promise: an order is reflected here at most ten seconds after its file appeared.
CREATE MATERIALIZED VIEW revenue_by_country
  TBLPROPERTIES ('springhouse.staleness' = '10 seconds', 'springhouse.priority' = '10')
  AS SELECT country, count(*) AS orders, sum(amount) AS revenue
     FROM orders
     GROUP BY country;
