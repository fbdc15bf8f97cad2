"""Orders of a little shop: rows and messages in one transaction."""

import dagster as dg
from sqlalchemy import BigInteger, Identity
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from harvest_dagster import Message
from harvest_dagster.orchestration import KafkaResource, OutboxResource
from resources.database import DatabaseResource


class Base(DeclarativeBase):
    """The shop's tables."""


class Order(Base):
    """One order."""

    __tablename__ = "shop_order"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    customer: Mapped[str]
    cents: Mapped[int]


class Orders(dg.Config):
    """How many orders come in."""

    count: int = 100
    customers: int = 10


@dg.asset(group_name="shop", kinds={"postgres"}, owners=["team:shop"])
def orders(
    config: Orders, database: DatabaseResource, outbox: OutboxResource, kafka: KafkaResource
) -> dg.Output[None]:
    """New orders, each with its message in the outbox."""
    engine = database.engine()
    Base.metadata.create_all(engine)
    kafka.ensure_topic("orders")
    with Session(engine) as session, session.begin():
        new = [
            Order(customer=f"customer-{number % config.customers}", cents=100 + number)
            for number in range(config.count)
        ]
        session.add_all(new)
        session.flush()
        stashed = outbox.stash(session, map(message_of, new))
    return dg.Output(None, metadata={"dagster/row_count": len(new), "stashed": stashed})


def message_of(order: Order) -> Message:
    """Tell of an order, in order for each customer."""
    return Message("orders", order.customer, {"order": order.id, "cents": order.cents})
