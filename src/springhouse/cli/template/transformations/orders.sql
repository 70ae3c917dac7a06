-- Every file that appears in data/orders is taken in, exactly once.
CREATE STREAMING TABLE orders
  AS SELECT * FROM STREAM read_files(
    'data/orders',
    format => 'json',
    schema => 'id BIGINT, customer STRING, country STRING, amount DECIMAL(12,2), placed_at TIMESTAMP'
  );
