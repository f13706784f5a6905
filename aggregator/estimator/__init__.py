"""A study inside scikit-learn: the estimator, its predictions, and a published model for other programs."""

from aggregator.estimator.classifier import Explanation, LocallyPrivateClassifier, PrivacyLeakWarning
from aggregator.estimator.prediction import NotShownWarning, PublishedClassifier

__all__ = ["Explanation", "LocallyPrivateClassifier", "NotShownWarning", "PrivacyLeakWarning", "PublishedClassifier"]
