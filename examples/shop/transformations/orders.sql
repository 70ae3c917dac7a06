-- What the tills and the web shop send: orders as JSON, their lines as Parquet, payments as CSV.

CREATE STREAMING TABLE orders (
  CONSTRAINT has_customer EXPECT (customer_id IS NOT NULL) ON VIOLATION QUARANTINE,
  CONSTRAINT known_channel EXPECT (channel IN ('web', 'app', 'store'))  -- kept, and counted
)
  COMMENT 'One row per order, dated by the till; a till that was offline sends late'
  TBLPROPERTIES ('springhouse.timestamp' = 'placed_at', 'springhouse.lateness' = '15 seconds')
  AS SELECT order_id, customer_id, channel, placed_at
  FROM STREAM read_files('data/orders', format => 'json',
    schema => 'order_id BIGINT, customer_id BIGINT, channel STRING, placed_at TIMESTAMP');

CREATE STREAMING TABLE order_lines (
  -- A line of nothing is how the old tills cancel: it is no sale, and nobody has to look at it.
  CONSTRAINT positive_quantity EXPECT (quantity > 0) ON VIOLATION DROP ROW
)
  AS SELECT order_id, line, product_id, quantity, unit_price,
            CAST(quantity * unit_price AS DECIMAL(12, 2)) AS amount
  FROM STREAM read_files('data/order_lines', format => 'parquet');

CREATE STREAMING TABLE payments (
  CONSTRAINT positive_amount EXPECT (amount > 0) ON VIOLATION QUARANTINE
)
  AS SELECT payment_id, order_id, method, amount, paid_at
  FROM STREAM read_files('data/payments', format => 'csv', header => true,
    schema => 'payment_id BIGINT, order_id BIGINT, method STRING, amount DECIMAL(12, 2), paid_at TIMESTAMP');
