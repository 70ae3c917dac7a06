-- What sells: a hierarchy of three levels over the lines, and what visitors look at.

CREATE STREAMING TABLE products
  TBLPROPERTIES ('springhouse.period' = '1 minute')
  AS SELECT * FROM STREAM read_files('reference/products.csv', format => 'csv', header => true,
    schema => 'product_id BIGINT, product STRING, category STRING, cost DECIMAL(10, 2)');

CREATE STREAMING TABLE clicks COMMENT 'Product pages that were opened'
  AS SELECT time AS clicked_at, offset AS click_id, 1 + offset * 7 % 24 AS product_id
  FROM STREAM sample(rate => '40');

CREATE MATERIALIZED VIEW sales_by_product
  TBLPROPERTIES ('springhouse.staleness' = '15 seconds', 'springhouse.priority' = '3')
  AS SELECT p.product_id, p.product, p.category,
            count(DISTINCT l.order_id) AS orders,
            sum(l.quantity) AS units,
            sum(l.amount) AS revenue,
            sum(l.amount - l.quantity * p.cost) AS margin
  FROM order_lines l
  JOIN products p ON p.product_id = l.product_id
  GROUP BY p.product_id, p.product, p.category;

CREATE MATERIALIZED VIEW sales_by_category
  TBLPROPERTIES ('springhouse.staleness' = '20 seconds')
  AS SELECT category, sum(units) AS units, sum(revenue) AS revenue, sum(margin) AS margin,
            round(100 * sum(margin) / sum(revenue), 1) AS margin_percent
  FROM sales_by_product
  GROUP BY category;

CREATE MATERIALIZED VIEW category_leaders COMMENT 'The three best sellers of each category'
  TBLPROPERTIES ('springhouse.staleness' = '30 seconds')
  AS SELECT s.category, s.place, s.product, s.revenue,
            round(100 * s.revenue / c.revenue, 1) AS percent_of_category
  FROM (
    SELECT category, product, revenue,
           row_number() OVER (PARTITION BY category ORDER BY revenue DESC, product_id) AS place
    FROM sales_by_product
  ) s
  JOIN sales_by_category c ON c.category = s.category
  WHERE s.place <= 3;

CREATE MATERIALIZED VIEW product_conversion COMMENT 'Orders per hundred visits of a product page'
  TBLPROPERTIES ('springhouse.staleness' = '30 seconds', 'springhouse.inconsistency' = '1 minute')
  AS SELECT s.product_id, s.product, v.visits, s.orders,
            round(100.0 * s.orders / v.visits, 1) AS orders_per_hundred_visits
  FROM sales_by_product s
  JOIN (SELECT product_id, count(*) AS visits FROM clicks GROUP BY product_id) v
    ON v.product_id = s.product_id;

-- What is bought together. A self join of all lines: by far the most work of all views, so it is
-- promised late and weighs little.
CREATE MATERIALIZED VIEW bought_together
  TBLPROPERTIES ('springhouse.staleness' = '45 seconds', 'springhouse.priority' = '0.2')
  AS WITH pairs AS (
    SELECT a.product_id AS first_id, b.product_id AS second_id, count(DISTINCT a.order_id) AS orders
    FROM order_lines a
    JOIN order_lines b ON b.order_id = a.order_id AND b.product_id > a.product_id
    GROUP BY a.product_id, b.product_id
  ),
  sold AS (SELECT product_id, count(DISTINCT order_id) AS orders FROM order_lines GROUP BY product_id)
  SELECT first.product AS product, second.product AS bought_with, pairs.orders,
         round(100.0 * pairs.orders / sold.orders, 1) AS percent_of_orders,
         rank() OVER (PARTITION BY first_id ORDER BY pairs.orders DESC) AS place
  FROM pairs
  JOIN sold ON sold.product_id = pairs.first_id
  JOIN products first ON first.product_id = pairs.first_id
  JOIN products second ON second.product_id = pairs.second_id;
