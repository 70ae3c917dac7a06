-- What is owed: a diamond. Both halves start from `orders`, and finance reads them side by side.

CREATE MATERIALIZED VIEW order_totals (
  CONSTRAINT has_lines EXPECT (lines > 0)  -- the till's orders and lines come in separate files
)
  COMMENT 'What every order costs'
  TBLPROPERTIES ('springhouse.staleness' = '15 seconds', 'springhouse.priority' = '5')
  AS SELECT o.order_id, o.customer_id, o.channel, o.placed_at,
            count(l.line) AS lines, coalesce(sum(l.amount), 0) AS billed
  FROM orders o
  LEFT JOIN order_lines l ON l.order_id = o.order_id
  GROUP BY o.order_id, o.customer_id, o.channel, o.placed_at;

CREATE MATERIALIZED VIEW order_payments COMMENT 'What was paid for every order'
  TBLPROPERTIES ('springhouse.staleness' = '15 seconds', 'springhouse.priority' = '5')
  AS SELECT o.order_id, count(p.payment_id) AS payments, coalesce(sum(p.amount), 0) AS paid,
            max(p.paid_at) AS last_paid_at
  FROM orders o
  LEFT JOIN payments p ON p.order_id = o.order_id
  GROUP BY o.order_id;

-- Strictly consistent (the default): both halves are read as of one moment, so that every order is
-- in both or in neither, in every version of this view.
CREATE MATERIALIZED VIEW reconciliation
  TBLPROPERTIES ('springhouse.staleness' = '20 seconds', 'springhouse.priority' = '10')
  AS SELECT t.channel, count(t.order_id) AS orders_billed, count(p.order_id) AS orders_in_ledger,
            sum(t.billed) AS billed, sum(p.paid) AS paid,
            sum(CASE WHEN p.paid < t.billed THEN t.billed - p.paid ELSE 0 END) AS owed
  FROM order_totals t
  FULL JOIN order_payments p ON p.order_id = t.order_id
  GROUP BY t.channel;

-- A chart on a wall: it has to be fresh, and customers who moved yesterday may count where they
-- lived. Its two inputs may be up to a minute apart.
CREATE MATERIALIZED VIEW revenue_by_country
  TBLPROPERTIES ('springhouse.staleness' = '15 seconds',
                 'springhouse.staleness.customers' = '1 minute',
                 'springhouse.inconsistency' = '1 minute',
                 'springhouse.priority' = '5')
  AS SELECT coalesce(c.country, 'unknown') AS country, count(*) AS orders, sum(t.billed) AS revenue
  FROM order_totals t
  LEFT JOIN customers c ON c.customer_id = t.customer_id
  GROUP BY coalesce(c.country, 'unknown');
