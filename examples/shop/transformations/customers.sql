-- Customers arrive as change events from the CRM: some out of order, some twice, some deletes.

CREATE STREAMING TABLE customer_changes (
  CONSTRAINT known_operation EXPECT (operation IN ('upsert', 'delete')) ON VIOLATION FAIL UPDATE
)
  AS SELECT sequence, operation, customer_id, name, country, tier
  FROM STREAM read_files('data/customers', format => 'json',
    schema => 'sequence BIGINT, operation STRING, customer_id BIGINT, name STRING, country STRING, tier STRING');

CREATE STREAMING TABLE customers COMMENT 'Every customer as of now';

CREATE FLOW customers_now AS AUTO CDC INTO customers
  FROM STREAM(customer_changes)
  KEYS (customer_id)
  APPLY AS DELETE WHEN operation = 'delete'
  SEQUENCE BY sequence
  COLUMNS * EXCEPT (operation, sequence)
  STORED AS SCD TYPE 1;

CREATE STREAMING TABLE customers_history COMMENT 'Every state that a customer was ever in';

CREATE FLOW customers_over_time AS AUTO CDC INTO customers_history
  FROM STREAM(customer_changes)
  KEYS (customer_id)
  APPLY AS DELETE WHEN operation = 'delete'
  SEQUENCE BY sequence
  COLUMNS * EXCEPT (operation, sequence)
  STORED AS SCD TYPE 2;

-- How many customers moved from which loyalty tier to which.
CREATE MATERIALIZED VIEW tier_moves
  TBLPROPERTIES ('springhouse.staleness' = '1 minute', 'springhouse.priority' = '0.5')
  AS SELECT before.tier AS from_tier, after.tier AS to_tier, count(*) AS moves
  FROM customers_history before
  JOIN customers_history after
    ON after.customer_id = before.customer_id AND after.__START_AT = before.__END_AT
  WHERE after.tier <> before.tier
  GROUP BY before.tier, after.tier;
